//! The lists of free blocks, one a size range, and the bitmap over them.
//!
//! ```text
//! heads[index] ──▶ block ⇄ block ⇄ block        last in, first out; linked both ways, so that any block can leave
//! ```
//!
//! Invariants: a block is in the list that [`index_of`] names for its size, once; the head has no previous block; the bitmap's bit is
//! set exactly where the head is not empty.
//! Cost: every operation but the last resort touches at most three blocks. The lists that allocation and merging take from are long or
//! short as chance has it, so entering a list, and taking its head, do without a branch: who is alone in a list tells itself. Leaving a
//! list from its middle is rare, and has branches.
//!
//! # Safety
//! Blocks passed in are free blocks of the heap that owns these lists (see `block.rs`), and sizes are below [`size_limit`], so
//! that every index is a list's number.
#![allow(unsafe_code)]

use crate::bitmap::Bitmap;
use crate::block::{Block, LEAST_BLOCK_BYTES, Previous, Sealer};
#[allow(unused_imports, reason = "named by the documentation above")]
use crate::mapping::size_limit;
use crate::mapping::{FIRST_LEVEL, GRANULE, index_of};
use core::hint::{cold_path, select_unpredictable};
use core::ops::Range;
use freestone_base::bits::log2_floor;

/// Blocks of near lists have at most this part of a block more than was asked for, 5 of 32, ...
const NEAR_SHARE: (usize, usize) = (5, 32);
/// ... and their lists are at most this far from the first that was searched.
const NEAR_BYTES: usize = 256;

/// All free blocks of a heap.
pub(crate) struct FreeLists<const FIRST: usize, const SECOND: usize> {
    pub(crate) bitmap: Bitmap<FIRST, SECOND>,
    heads: [[Option<Block>; SECOND]; FIRST],
}

impl<const FIRST: usize, const SECOND: usize> FreeLists<FIRST, SECOND> {
    /// The numbers of the lists.
    pub(crate) const NUMBERS: Range<usize> = FIRST_LEVEL * SECOND..(FIRST_LEVEL + FIRST) * SECOND;

    /// By first level: how many lists are near, from the first that is searched on. Where lists are closer together than sizes are, those
    /// of one size.
    #[allow(clippy::indexing_slicing, reason = "while compiling, where a panic is an error")]
    const NEAR: [u8; FIRST] = {
        let by_share = (SECOND * NEAR_SHARE.0 / NEAR_SHARE.1).saturating_sub(1);
        let mut near = [0; FIRST];
        let mut level = 0;
        while level < FIRST {
            let log2 = level + log2_floor(LEAST_BLOCK_BYTES) as usize;
            // In 64 bits, for there may be more levels than an address has bits.
            let of_one_size = ((GRANULE * SECOND) as u64 >> log2) as usize;
            let by_bytes = if of_one_size > 1 { of_one_size } else { ((NEAR_BYTES * SECOND) as u64 >> log2) as usize };
            near[level] = if by_bytes < by_share { by_bytes } else { by_share } as u8;
            level += 1;
        }
        near
    };

    /// Whether list `index` is so near above list `least`, the first that was searched, that its blocks are given whole: what could be
    /// cut off them is worth less than cutting it off and merging it again. Never from 16 KiB up. See `docs/decisions/0014`.
    #[inline(always)]
    pub(crate) fn is_near(least: usize, index: usize) -> bool {
        let level = least >> log2_floor(SECOND);
        debug_assert!(level - FIRST_LEVEL < FIRST);
        // SAFETY: a list's level is one of `FIRST`, from `FIRST_LEVEL` on.
        let near = unsafe { Self::NEAR.as_ptr().wrapping_sub(FIRST_LEVEL).wrapping_add(level).read() };
        index - least < usize::from(near)
    }

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

    /// The lowest list at or above list `least` that holds a block, and its head.
    #[inline(always)]
    pub(crate) fn find(&self, least: usize) -> Option<(usize, Block)> {
        let index = self.bitmap.lowest_from(least)?;
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
        let index = index_of(size, SECOND);
        let head = self.head(index);
        // SAFETY: the block is free, says the caller, and a head is in its list. Without one the block tells itself, and then the truth.
        unsafe {
            block.set_next_free(head);
            either(head, block).set_prev_free(Previous::block(block));
            block.set_prev_free(Previous::list(index));
            self.set_head(index, Some(block));
        }
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
            if previous.is_list() {
                cold_path();
                self.set_head(previous.as_list(), next);
                if next.is_none() {
                    return self.bitmap.clear_if(true, previous.as_list());
                }
            } else {
                previous.set_next_free(next);
            }
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
    pub(crate) unsafe fn pop(&mut self, block: Block, index: usize) {
        // SAFETY: the block is listed, so what follows it is in the same list. With nothing behind it, it tells itself.
        unsafe {
            let next = block.next_free();
            self.set_head(index, next);
            either(next, block).set_prev_free(Previous::list(index));
            self.bitmap.clear_if(next.is_none(), index);
        }
    }
}

/// `block`, or else `other`, without a branch.
#[inline(always)]
fn either(block: Option<Block>, other: Block) -> Block {
    // SAFETY: one of the two is there.
    unsafe { select_unpredictable(block.is_some(), block, Some(other)).unwrap_unchecked() }
}

#[cfg(test)]
mod tests;
