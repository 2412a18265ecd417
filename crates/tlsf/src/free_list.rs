//! The lists of free blocks, one per range of sizes, and the bitmap over them.
//!
//! ```text
//! heads[index] ──▶ block ⇄ block ⇄ block        last in, first out; linked both ways, so that any block can leave
//! ```
//!
//! Invariants: a block is in the list that [`index_of`] names for its size, once; the head's back link is the index of its list; the
//! bitmap's bit is set exactly where a list is not empty.
//!
//! Cost: every operation but [`FreeLists::find_in_own_list`] touches at most three blocks. Whether the lists that allocation and merging
//! use are empty is unpredictable, so entering a list and taking its head have no branch: where there is no other block to update, the
//! block writes to itself instead. Leaving a list from its middle is rare, and has branches.
//!
//! # Safety
//! A [`ListIndex`] comes from the size of a block of this heap, or is that plus one. Regions are shorter than
//! [`size_limit`](crate::mapping::size_limit) of `FIRST`, so the list of that index exists. A block is in a list from [`FreeLists::insert`]
//! to [`FreeLists::remove`] or [`FreeLists::pop`]; meanwhile its links are those that were written here.
#![allow(unsafe_code)]

use crate::bitmap::Bitmap;
use crate::block::{BackLink, Block};
use crate::close_fit;
use crate::header::Sealer;
use crate::mapping::{FIRST_LEVEL, ListIndex, index_of};
use core::ops::Range;
use freestone_base::branch::{cold_path, select_unpredictable};

/// All free blocks of a heap, except the top.
pub(crate) struct FreeLists<const FIRST: usize, const SECOND: usize> {
    pub(crate) bitmap: Bitmap<FIRST, SECOND>,
    heads: [[Option<Block>; SECOND]; FIRST],
}

/// Where a search found a block.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// The first list that was searched: every block in it fits.
    pub(crate) least: ListIndex,
    /// The list that the block heads.
    pub(crate) index: ListIndex,
}

impl<const FIRST: usize, const SECOND: usize> FreeLists<FIRST, SECOND> {
    /// The numbers of the lists.
    pub(crate) const NUMBERS: Range<usize> = FIRST_LEVEL * SECOND..(FIRST_LEVEL + FIRST) * SECOND;

    const CLOSE_FITS: [u8; FIRST] = close_fit::n_lists::<FIRST, SECOND>();

    /// Whether the block that was found is a close fit, and is to be handed out whole (see `close_fit.rs`).
    #[inline(always)]
    pub(crate) fn is_close_fit(found: Found) -> bool {
        let level = found.least.level(SECOND);
        debug_assert!(level - FIRST_LEVEL < FIRST);
        let entry = Self::CLOSE_FITS.as_ptr().wrapping_sub(FIRST_LEVEL).wrapping_add(level);
        // SAFETY: the level of a list's index is one of the `FIRST` levels, which are stored as `FIRST_LEVEL` and up.
        let n_lists = unsafe { entry.read() };
        found.index.number() - found.least.number() < usize::from(n_lists)
    }

    /// Lists without a block.
    pub(crate) const fn new() -> Self {
        Self { bitmap: Bitmap::new(), heads: [[None; SECOND]; FIRST] }
    }

    /// The first block of list `index`.
    #[inline(always)]
    pub(crate) fn head(&self, index: ListIndex) -> Option<Block> {
        debug_assert!(Self::NUMBERS.contains(&index.number()));
        let heads = self.heads.as_ptr().cast::<Option<Block>>();
        let head = heads.wrapping_sub(Self::NUMBERS.start).wrapping_add(index.number());
        // SAFETY: the index is one of `NUMBERS`, and the nested array is one array of as many heads.
        unsafe { *head }
    }

    #[inline(always)]
    fn set_head(&mut self, index: ListIndex, block: Option<Block>) {
        debug_assert!(Self::NUMBERS.contains(&index.number()));
        let heads = self.heads.as_mut_ptr().cast::<Option<Block>>();
        let head = heads.wrapping_sub(Self::NUMBERS.start).wrapping_add(index.number());
        // SAFETY: the index is one of `NUMBERS`, and the nested array is one array of as many heads.
        unsafe { head.write(block) }
    }

    /// The lowest list at or above `least` that holds a block, and its head.
    #[inline(always)]
    pub(crate) fn find(&self, least: ListIndex) -> Option<(Found, Block)> {
        let index = self.bitmap.lowest_from(least)?;
        // SAFETY: the bitmap's bit of a list is set only while the list has a head.
        let block = unsafe { self.head(index).unwrap_unchecked() };
        Some((Found { least, index }, block))
    }

    /// The first block with at least `size` bytes among the first `most` blocks of the list that `size` itself belongs to; or a block
    /// on the way there whose header was overwritten, because its link cannot be followed.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_in_own_list(&self, size: usize, most: u32, sealer: Sealer) -> Option<Block> {
        let mut candidate = self.head(index_of(size, SECOND));
        for _ in 0..most {
            let block = candidate?;
            let header = block.header(sealer);
            if !header.is_intact() || header.size() >= size {
                return Some(block);
            }
            // SAFETY: the block was reached from the head of a list, so it is in that list; its header is intact.
            candidate = unsafe { block.next_free() };
        }
        None
    }

    /// Puts `block` at the head of the list for blocks of `size` bytes.
    ///
    /// # Safety
    /// - The block is a free one of this heap, has `size` bytes, and is in no list.
    #[inline(always)]
    pub(crate) unsafe fn insert(&mut self, block: Block, size: usize) {
        let index = index_of(size, SECOND);
        let head = self.head(index);
        // SAFETY: the block is free.
        unsafe { block.set_next_free(head) };
        // SAFETY: the head of a list is free; so is the block, which gets this link if there is no head, and the right one next.
        unsafe { either(head, block).set_back_link(BackLink::block(block)) };
        // SAFETY: the block is free.
        unsafe { block.set_back_link(BackLink::list(index)) };
        self.set_head(index, Some(block));
        self.bitmap.set(index);
    }

    /// Takes `block` out of its list, wherever it stands in it.
    ///
    /// # Safety
    /// - The block is in a list of this heap.
    #[inline(always)]
    pub(crate) unsafe fn remove(&mut self, block: Block) {
        // SAFETY: the block is in a list.
        let previous = unsafe { block.back_link() };
        // SAFETY: the block is in a list.
        let next = unsafe { block.next_free() };
        if let Some(index) = previous.as_list() {
            cold_path();
            self.set_head(index, next);
            if next.is_none() {
                return self.bitmap.clear_if(true, index);
            }
        } else {
            // SAFETY: the back link is not a list, so it is a block of the same list, which is free.
            unsafe { previous.set_next_free(next) };
        }
        if let Some(next) = next {
            // SAFETY: the next block of a list is free.
            unsafe { next.set_back_link(previous) };
        }
    }

    /// Takes `block`, the head of list `index`, out of that list.
    ///
    /// # Safety
    /// - The block is the head of that list.
    #[inline(always)]
    pub(crate) unsafe fn pop(&mut self, block: Block, index: ListIndex) {
        // SAFETY: the block is in a list.
        let next = unsafe { block.next_free() };
        self.set_head(index, next);
        // SAFETY: the next block of a list is free; so is this one, which gets the link if there is no next.
        unsafe { either(next, block).set_back_link(BackLink::list(index)) };
        self.bitmap.clear_if(next.is_none(), index);
    }
}

/// `block` if there is one, else `other`, without a branch.
#[inline(always)]
fn either(block: Option<Block>, other: Block) -> Block {
    let chosen = select_unpredictable(block.is_some(), block, Some(other));
    // SAFETY: `block` is chosen only if it is `Some`, and the alternative is `Some`.
    unsafe { chosen.unwrap_unchecked() }
}

#[cfg(test)]
mod tests;
