//! The lists of free blocks, one a size range, and the bitmap over them.
//!
//! ```text
//! heads[index] ──▶ block ⇄ block ⇄ block        last in, first out; linked both ways, so that any block can leave
//! ```
//!
//! Invariants: a block is in the list that [`index_of`] names for its size, once; the head has no previous block; the bitmap's bit is
//! set exactly where the head is not empty.
//! Cost: every operation but the last resort touches at most three blocks.
//!
//! # Safety
//! Blocks passed in are free blocks of the heap that owns these lists (see `block.rs`), and sizes are below [`size_limit`], so
//! that every index is below `FIRST * SECOND`.
#![allow(unsafe_code)]

use crate::bitmap::Bitmap;
use crate::block::{Block, LEAST_BLOCK_BYTES, Previous, Sealer};
#[allow(unused_imports, reason = "named by the documentation above")]
use crate::mapping::size_limit;
use crate::mapping::{index_of, index_to_search};
use core::hint::select_unpredictable;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// All free blocks of a heap.
pub(crate) struct FreeLists<const FIRST: usize, const SECOND: usize> {
    pub(crate) bitmap: Bitmap<FIRST, SECOND>,
    heads: [[Option<Block>; SECOND]; FIRST],
    sink: MaybeUninit<[u64; LEAST_BLOCK_BYTES / 8]>,
}

impl<const FIRST: usize, const SECOND: usize> FreeLists<FIRST, SECOND> {
    /// No free block.
    pub(crate) const fn new() -> Self {
        Self { bitmap: Bitmap::new(), heads: [[None; SECOND]; FIRST], sink: MaybeUninit::uninit() }
    }

    /// The first block of list `index`.
    #[inline(always)]
    pub(crate) fn head(&self, index: usize) -> Option<Block> {
        debug_assert!(index < FIRST * SECOND);
        // SAFETY: sizes, and so indices, are below the limit that regions are held to; the nested array is one array.
        unsafe { *self.heads.as_ptr().cast::<Option<Block>>().add(index) }
    }

    /// Where the first block of list `index` is written down.
    #[inline(always)]
    fn head_place(&mut self, index: usize) -> *mut Option<Block> {
        self.heads.as_mut_ptr().cast::<Option<Block>>().wrapping_add(index)
    }

    #[inline(always)]
    fn set_head(&mut self, index: usize, block: Option<Block>) {
        // SAFETY: a place in the table.
        unsafe { self.head_place(index).write(block) }
    }

    /// The head of the lowest list in which every block has at least `size` bytes.
    #[inline(always)]
    pub(crate) fn find(&self, size: usize) -> Option<Block> {
        self.head(self.bitmap.lowest_from(index_to_search(size, SECOND))?)
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
            head.unwrap_or(self.sink()).set_prev_free(Previous::block(block));
        }
        self.set_head(index, Some(block));
        self.bitmap.set(index);
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
            next.unwrap_or(self.sink()).set_prev_free(previous);
            let (is_head, index) = (previous.is_list(), previous.as_list());
            let link = select_unpredictable(is_head, self.head_place(index), previous.next_free_place());
            link.write(next);
            self.bitmap.clear(select_unpredictable(is_head & next.is_none(), index, Bitmap::<FIRST, SECOND>::NO_LIST));
        }
    }

    /// Takes `old` out of its list and puts `new`, of `size` bytes, at the head of its own: in one step if `old` is the head of just
    /// that list, as it is while small blocks are cut from a large one and put back.
    ///
    /// # Safety
    /// See the file's header; `old` is in a list and `new` is in none, or is `old`.
    #[inline(always)]
    pub(crate) unsafe fn replace(&mut self, old: Block, new: Block, size: usize) {
        let index = index_of(size, SECOND);
        // SAFETY: the caller's obligations are those of the steps.
        unsafe {
            if old.prev_free() == Previous::list(index) {
                let next = old.next_free();
                new.set_next_free(next);
                new.set_prev_free(Previous::list(index));
                next.unwrap_or(self.sink()).set_prev_free(Previous::block(new));
                self.set_head(index, Some(new));
            } else {
                self.remove(old);
                self.insert_at(new, index);
            }
        }
    }

    /// Where links to no block are written, so that linking needs no branch: which neighbours a block has in its list cannot be
    /// predicted, and a wrong guess costs more than a write nobody reads.
    #[inline(always)]
    fn sink(&mut self) -> Block {
        Block::at(NonNull::from(&mut self.sink).cast())
    }
}
