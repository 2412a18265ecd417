//! The free blocks of a pool, as bits in groups of 64, and a list of the groups that have some.
//!
//! ```text
//! first ──▶ | group 2: bits 0 1 1 0 .. | next ──▶ | group 0: bits 1 0 0 0 .. | next ──▶ none
//! ```
//!
//! A block is one bit: set while it is free. Groups lie behind the blocks, so no call touches a block, a second free is seen at once,
//! and a write into a free block harms nobody. A group joins the list in front when its first block comes back, and leaves it
//! with its last one; within a group the lowest block goes first. So the blocks handed out are the newest to within 64, and those
//! handed out one after the other lie side by side, which processors fetch, translate and clear faster than blocks in the order
//! of their frees: crowds of 2560 blocks of 4 KiB, freed scrambled, were cleared in a sixth less time.
//!
//! A group is written for the first time when the first of its blocks is carved, so that making a pool touches no memory.
//!
//! Invariant: a begun group is on the list, once, exactly if it has a free block.
//! Cost: O(1).
//!
//! # Safety
//! Callers name blocks whose group was begun. The list is compared with the number of groups before it is followed, so a write past the
//! last block is never obeyed beyond the groups themselves.
#![allow(unsafe_code)]

use core::ptr::NonNull;

/// Blocks of a group.
const BLOCKS: usize = u64::BITS as usize;

/// The end of the list.
const NONE: usize = usize::MAX;

/// Sixty-four blocks.
#[derive(Debug)]
struct Group {
    /// Set bits are free blocks.
    free: u64,
    /// The next group on the list.
    next: usize,
}

/// The groups of one pool.
#[derive(Debug)]
pub(crate) struct Groups {
    start: NonNull<Group>,
    /// The group that had none free for the shortest time.
    first: usize,
    n_begun: usize,
}

/// Bytes of the groups of `count` blocks.
pub(crate) const fn bytes(count: usize) -> usize {
    count.div_ceil(BLOCKS) * size_of::<Group>()
}

impl Groups {
    /// The groups at `start`, none of them begun.
    pub(crate) fn at(start: NonNull<u8>) -> Self {
        Self { start: start.cast(), first: NONE, n_begun: 0 }
    }

    /// Prepares the bit of the next block to be carved, as one in use. Blocks are carved in order.
    ///
    /// # Safety
    /// - There is a group for `index`, and nobody else uses it.
    pub(crate) unsafe fn begin(&mut self, index: usize) {
        if index.is_multiple_of(BLOCKS) {
            // SAFETY: the caller's promise.
            unsafe { self.start.add(index / BLOCKS).write(Group { free: 0, next: NONE }) };
            self.n_begun = index / BLOCKS + 1;
        }
    }

    /// Whether a block is free.
    ///
    /// # Safety
    /// - The group of `index` was begun.
    pub(crate) unsafe fn is_free(&self, index: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.start.add(index / BLOCKS).as_ref().free & mask(index) != 0 }
    }

    /// Walks the list: the number of free blocks on it, or the first block of a group that is wrong.
    ///
    /// # Safety
    /// - Exactly the groups of the first `n_carved` blocks were begun.
    pub(crate) unsafe fn check(&self, n_carved: usize) -> Result<usize, usize> {
        let (mut n_free, mut last, mut at) = (0, 0, self.first);
        while at != NONE {
            if at >= self.n_begun {
                return Err(last);
            }
            last = at * BLOCKS;
            // SAFETY: the group was begun.
            let group = unsafe { self.start.add(at).as_ref() };
            let n_here = (n_carved - last).min(BLOCKS) as u32;
            n_free += group.free.count_ones() as usize;
            if group.free == 0 || group.free.checked_shr(n_here).unwrap_or(0) != 0 || n_free > n_carved {
                return Err(last);
            }
            at = group.next;
        }
        Ok(n_free)
    }

    /// Whether the list was overwritten, if nothing could be taken from it.
    pub(crate) fn is_lost(&self) -> bool {
        self.first != NONE
    }

    /// Takes the lowest free block of the first group; none if there is no group, or none that was begun.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<usize> {
        let at = self.first;
        if at >= self.n_begun {
            return None;
        }
        // SAFETY: the group was begun.
        let group = unsafe { self.start.add(at).as_mut() };
        let index = at * BLOCKS + group.free.trailing_zeros() as usize;
        group.free &= group.free.wrapping_sub(1);
        if group.free == 0 {
            self.first = group.next;
        }
        Some(index)
    }

    /// Makes a block free; `false`, and nothing changed, if it is free already.
    ///
    /// # Safety
    /// - The group of `index` was begun.
    #[inline(always)]
    pub(crate) unsafe fn put(&mut self, index: usize) -> bool {
        // SAFETY: the caller's promise.
        if unsafe { self.is_free(index) } {
            return false;
        }
        // SAFETY: the caller's promise.
        unsafe { self.put_unchecked(index) };
        true
    }

    /// Makes a block in use free.
    ///
    /// # Safety
    /// - The group of `index` was begun.
    #[inline(always)]
    pub(crate) unsafe fn put_unchecked(&mut self, index: usize) {
        let at = index / BLOCKS;
        // SAFETY: the caller's promise.
        let group = unsafe { self.start.add(at).as_mut() };
        if group.free == 0 {
            group.next = self.first;
            self.first = at;
        }
        group.free |= mask(index);
    }
}

#[inline(always)]
fn mask(index: usize) -> u64 {
    1 << (index % BLOCKS)
}
