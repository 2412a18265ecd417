//! The quarantine: blocks that the program freed, and that are not handed out again for a while.
//!
//! First in, first out, bounded in blocks and in bytes. A block that is used after it was freed is most likely used soon: as long as it waits,
//! nobody else has it, and when it leaves, its contents show whether it was written.
//!
//! Threads: only the heap's thread. Any thread may read what large blocks count.

use core::cell::Cell;
use core::ptr;
use freestone_base::count;
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Most blocks.
const BLOCKS_MOST: usize = 1024;

/// Most bytes, in a process of few threads: what the second-level cache of one core holds, so that a block is still there when its contents are
/// checked.
const BYTES_MOST: usize = 512 * 1024;

/// Most bytes in all quarantines of a process of many threads: those that sleep keep theirs.
const BYTES_OF_ALL: usize = 4 << 20;

/// Blocks longer than this do not wait.
const LONGEST_BYTES: usize = BYTES_MOST * 3 / 4;

/// Blocks that leave at once when there is no room: what is done per span and per batch is done less often.
const LEAVE_AT_ONCE: u32 = 16;

/// See the module header. Zero is an empty one.
#[derive(Debug)]
pub(crate) struct Quarantine {
    ring: [Cell<*mut u8>; BLOCKS_MOST],
    first: Cell<u32>,
    len: Cell<u32>,
    bytes: Cell<usize>,
    /// Large blocks that came, ever, and their pages; and those that left.
    large_came: [AtomicU64; 2],
    large_left: [AtomicU64; 2],
}

impl Quarantine {
    /// Whether a block of `bytes` may wait at all.
    pub(crate) fn takes(bytes: usize) -> bool {
        bytes <= LONGEST_BYTES
    }

    /// Adds a block of `bytes`, which [`Quarantine::takes`] allows; there is room for it.
    #[inline]
    pub(crate) fn push(&self, start: *mut u8, bytes: usize) {
        let at = (self.first.get() + self.len.get()) as usize % BLOCKS_MOST;
        debug_assert!((self.len.get() as usize) < BLOCKS_MOST);
        self.ring[at].set(start);
        self.len.set(self.len.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Takes out the block that came first. The caller finds out its length, and says it to [`Quarantine::discount`].
    #[inline]
    pub(crate) fn pop(&self) -> Option<*mut u8> {
        let len = self.len.get().checked_sub(1)?;
        let first = self.first.get() as usize;
        self.len.set(len);
        // An empty ring starts anew, so that a heap that rarely frees touches little of it.
        self.first.set(if len == 0 { 0 } else { ((first + 1) % BLOCKS_MOST) as u32 });
        Some(self.ring[first].replace(ptr::null_mut()))
    }

    /// Discounts a block of `bytes` that was taken out.
    #[inline]
    pub(crate) fn discount(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }

    /// How many blocks have to leave before one of `bytes` comes, in a process of so many heaps.
    #[inline]
    pub(crate) fn n_to_leave(&self, bytes: usize, n_heaps: u32) -> u32 {
        let most = BYTES_MOST.min(BYTES_OF_ALL / n_heaps.max(1) as usize);
        let has_room =
            self.len.get() == 0 || ((self.len.get() as usize) < BLOCKS_MOST && self.bytes.get() + bytes <= most);
        if has_room { 0 } else { LEAVE_AT_ONCE }
    }

    /// Blocks that wait.
    pub(crate) fn len(&self) -> u32 {
        self.len.get()
    }

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        let first = self.first.get() as usize;
        (first..first + self.len.get() as usize).map(|at| self.ring[at % BLOCKS_MOST].get())
    }

    /// Counts a large block of `n_pages` that comes.
    pub(crate) fn count_large(&self, n_pages: Pages) {
        count::increment(&self.large_came[0]);
        count::add(&self.large_came[1], u64::from(n_pages.0));
    }

    /// Counts a large block of `n_pages` that leaves.
    pub(crate) fn discount_large(&self, n_pages: Pages) {
        count::increment(&self.large_left[0]);
        count::add(&self.large_left[1], u64::from(n_pages.0));
    }

    /// Large blocks that wait, and their pages. Any thread may ask.
    pub(crate) fn large(&self) -> (u64, u64) {
        let [blocks, pages] = [0, 1].map(|at: usize| {
            let left = self.large_left[at].load(Ordering::Relaxed);
            self.large_came[at].load(Ordering::Relaxed).saturating_sub(left)
        });
        (blocks, pages)
    }
}

#[cfg(test)]
mod tests;
