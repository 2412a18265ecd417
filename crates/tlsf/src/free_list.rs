//! The lists of free blocks, one a size range, and the bitmap over them.
//!
//! ```text
//! heads[index] ──▶ block ⇄ block ⇄ block        last in, first out; linked both ways, so that any block can leave
//! ```
//!
//! Invariants: a block is in the list that [`index_of`] names for its size, once; the head has no previous block; the bitmap's bit is
//! set exactly where the head is not empty.
//! Cost: every operation but the last resort touches at most three blocks. Either a neighbour in the list is told or a bit changes,
//! never both. (Without a branch between the two a random mix has 28 % fewer branches guessed wrongly, and still takes 2 to 4 %
//! longer: what the next call finds in the bitmap then waits for a block that is not in the cache, where a guess does not.)
//!
//! # Safety
//! Blocks passed in are free blocks of the heap that owns these lists (see `block.rs`), and sizes are below [`size_limit`], so
//! that every index is a list's number.
#![allow(unsafe_code)]

use crate::bitmap::Bitmap;
use crate::block::{Block, Previous, Sealer};
#[allow(unused_imports, reason = "named by the documentation above")]
use crate::mapping::size_limit;
use crate::mapping::{FIRST_LEVEL, index_of, index_to_search};
use core::ops::Range;

/// All free blocks of a heap.
pub(crate) struct FreeLists<const FIRST: usize, const SECOND: usize> {
    pub(crate) bitmap: Bitmap<FIRST, SECOND>,
    heads: [[Option<Block>; SECOND]; FIRST],
}

impl<const FIRST: usize, const SECOND: usize> FreeLists<FIRST, SECOND> {
    /// The numbers of the lists.
    pub(crate) const NUMBERS: Range<usize> = FIRST_LEVEL * SECOND..(FIRST_LEVEL + FIRST) * SECOND;

    /// No free block.
    pub(crate) const fn new() -> Self {
        Self { bitmap: Bitmap::new(), heads: [[None; SECOND]; FIRST] }
    }

    /// The first block of list `index`.
    #[inline(always)]
    pub(crate) fn head(&self, index: usize) -> Option<Block> {
        debug_assert!(Self::NUMBERS.contains(&index));
        // SAFETY: sizes are below the limit that regions are held to, and so indices are lists' numbers; the nested array is one array.
        unsafe { *self.heads.as_ptr().cast::<Option<Block>>().wrapping_sub(Self::NUMBERS.start).wrapping_add(index) }
    }

    #[inline(always)]
    fn set_head(&mut self, index: usize, block: Option<Block>) {
        debug_assert!(Self::NUMBERS.contains(&index));
        let heads = self.heads.as_mut_ptr().cast::<Option<Block>>();
        // SAFETY: as above.
        unsafe { heads.wrapping_sub(Self::NUMBERS.start).wrapping_add(index).write(block) }
    }

    /// The lowest list in which every block has at least `size` bytes, and its head. The last list's least size is at least `size`.
    #[inline(always)]
    pub(crate) fn find(&self, size: usize) -> Option<(usize, Block)> {
        let index = self.bitmap.lowest_from(index_to_search(size, SECOND))?;
        // SAFETY: the bit is set because the list has a head.
        Some((index, unsafe { self.head(index).unwrap_unchecked() }))
    }

    /// The first block with at least `size` bytes among the first `most` of the list that `size` itself falls into.
    ///
    /// # Safety
    /// See the file's header.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn find_in_own_list(&self, size: usize, most: u32, sealer: Sealer) -> Option<Block> {
        let mut candidate = self.head(index_of(size, SECOND));
        for _ in 0..most {
            let block = candidate?;
            // SAFETY: a listed block is free and in a region.
            let (header, next) = unsafe { (block.header(sealer), block.next_free()) };
            if header.is_whole() && header.size() >= size {
                return Some(block);
            }
            candidate = next;
        }
        None
    }

    /// Puts `block` at the head of the list for `size`.
    ///
    /// # Safety
    /// See the file's header; the block is in no list.
    #[inline(always)]
    pub(crate) unsafe fn insert(&mut self, block: Block, size: usize) {
        // SAFETY: the same obligation.
        unsafe { self.insert_at(block, index_of(size, SECOND)) }
    }

    #[inline(always)]
    unsafe fn insert_at(&mut self, block: Block, index: usize) {
        let head = self.head(index);
        // SAFETY: the block is free and the head is in this list, says the caller.
        unsafe {
            block.set_next_free(head);
            block.set_prev_free(Previous::list(index));
            self.set_head(index, Some(block));
            match head {
                Some(head) => head.set_prev_free(Previous::block(block)),
                None => self.bitmap.set(index),
            }
        }
    }

    /// Takes `block` out of its list.
    ///
    /// # Safety
    /// See the file's header; the block is in a list.
    #[inline(always)]
    pub(crate) unsafe fn remove(&mut self, block: Block) {
        // SAFETY: the block is listed, so its links are blocks of the same list, or say which list it heads.
        unsafe {
            let (previous, next) = (block.prev_free(), block.next_free());
            if previous.is_list() {
                return self.remove_head(block, previous.as_list());
            }
            // Laid out behind the rest, so that no way has to jump over it.
            core::hint::cold_path();
            previous.set_next_free(next);
            if let Some(next) = next {
                next.set_prev_free(previous);
            }
        }
    }

    /// Takes `block`, the head of list `index`, out of it.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    pub(crate) unsafe fn remove_head(&mut self, block: Block, index: usize) {
        // SAFETY: the block is listed, so what follows it is in the same list.
        unsafe {
            let next = block.next_free();
            self.set_head(index, next);
            match next {
                Some(next) => next.set_prev_free(Previous::list(index)),
                None => self.bitmap.clear(index),
            }
        }
    }

    /// Puts `new` where `old` is: at the head of list `index`.
    ///
    /// # Safety
    /// See the file's header.
    #[inline(always)]
    unsafe fn replace_head(&mut self, old: Block, new: Block, index: usize) {
        // SAFETY: the caller's obligations are those of the steps.
        unsafe {
            let next = old.next_free();
            new.set_next_free(next);
            new.set_prev_free(Previous::list(index));
            self.set_head(index, Some(new));
            // A list that a block leaves and comes back to is a long range of sizes, and mostly has this block only.
            if let Some(next) = next {
                next.set_prev_free(Previous::block(new));
            }
        }
    }

    /// Takes `old`, the head of list `index`, out of it and puts `new`, of `size` bytes, at the head of its own list: in one step if
    /// that is the same, as it is while small blocks are cut from a large one and put back.
    ///
    /// # Safety
    /// See the file's header; `new` is in no list, or is `old`.
    #[inline(always)]
    pub(crate) unsafe fn move_head(&mut self, old: Block, index: usize, new: Block, size: usize) {
        let new_index = index_of(size, SECOND);
        // SAFETY: the caller's obligations are those of the steps.
        unsafe {
            if new_index == index {
                self.replace_head(old, new, index);
            } else {
                self.remove_head(old, index);
                self.insert_at(new, new_index);
            }
        }
    }

    /// Takes `old` out of its list and puts `new`, of `size` bytes, at the head of its own: in one step if `old` is the head of just
    /// that list.
    ///
    /// # Safety
    /// See the file's header; `old` is in a list and `new` is in none, or is `old`.
    #[inline(always)]
    pub(crate) unsafe fn replace(&mut self, old: Block, new: Block, size: usize) {
        let index = index_of(size, SECOND);
        // SAFETY: the caller's obligations are those of the steps.
        unsafe {
            let previous = old.prev_free();
            if previous == Previous::list(index) {
                // Not by `index`: the processor knows the link sooner, and goes on with it while the comparison is under way.
                self.replace_head(old, new, previous.as_list());
            } else {
                self.remove(old);
                self.insert_at(new, index);
            }
        }
    }
}
