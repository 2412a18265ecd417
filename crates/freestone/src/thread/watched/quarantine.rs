//! The quarantine: blocks that the program freed, and that are not handed out again for a while.
//!
//! First in, first out, bounded in blocks and in bytes. A block that is used after it was freed is most likely used soon: as long as it waits,
//! no other thread has it, and when it leaves, its contents show whether it was written.
//!
//! Threads: only the heap's thread. Any thread may read what large blocks count.

use core::cell::Cell;
use core::ptr;
use freestone_base::count;
use freestone_base::sync::{AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Most blocks.
const BLOCKS_MOST: usize = 512;

/// Most bytes, in a process of few threads: a few times what the first-level cache of one core holds, and a part of the second, so that a block is
/// still there when it is handed out again.
const BYTES_MOST: usize = 128 * 1024;

/// Most bytes in all quarantines of a process of many threads: those that sleep keep theirs.
const BYTES_OF_ALL: usize = 4 << 20;

/// Only the ends of a large block are looked at, so it counts as one part in this many of its bytes.
const LARGE_PART: usize = 4;

/// Blocks longer than this do not wait.
const LONGEST_BYTES: usize = LARGE_PART * BYTES_MOST * 3 / 4;

/// Blocks that leave at once when there is no room: what is done per batch is done less often.
pub(crate) const LEAVE_AT_ONCE: u32 = 16;

/// Not a small block of this heap.
const OTHER: u8 = 0;

/// See the module header. Zero is an empty one.
#[derive(Debug)]
pub(crate) struct Quarantine {
    starts: [Cell<*mut u8>; BLOCKS_MOST],
    /// The class of each block, and one more; or [`OTHER`].
    classes: [Cell<u8>; BLOCKS_MOST],
    first: Cell<u32>,
    len: Cell<u32>,
    bytes: Cell<usize>,
    /// How many bytes may wait; as of when blocks left last.
    most: Cell<usize>,
    /// Large blocks that came, ever, and their pages; and those that left.
    large_came: [AtomicU64; 2],
    large_left: [AtomicU64; 2],
}

impl Quarantine {
    /// Whether a large block of `bytes` may wait at all.
    pub(crate) fn takes(bytes: usize) -> bool {
        bytes <= LONGEST_BYTES
    }

    /// What a large block of `bytes` counts as.
    pub(crate) fn bytes_of_large(bytes: usize) -> usize {
        bytes / LARGE_PART
    }

    /// Adds a block that counts as `bytes`, for which there is room. `class`: it is a small one of this heap.
    #[inline(always)]
    pub(crate) fn push(&self, start: *mut u8, bytes: usize, class: Option<usize>) {
        let at = (self.first.get() + self.len.get()) as usize % BLOCKS_MOST;
        debug_assert!((self.len.get() as usize) < BLOCKS_MOST);
        self.starts[at].set(start);
        self.classes[at].set(class.map_or(OTHER, |class| class as u8 + 1));
        self.len.set(self.len.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Takes out the block that came first, and its class if it is a small one of this heap. The caller says to [`Quarantine::discount`] what it
    /// counted as.
    #[inline]
    pub(crate) fn pop(&self) -> Option<(*mut u8, Option<usize>)> {
        let len = self.len.get().checked_sub(1)?;
        let first = self.first.get() as usize % BLOCKS_MOST;
        self.len.set(len);
        // An empty ring starts anew, so that a heap that rarely frees touches little of it.
        self.first.set(if len == 0 { 0 } else { ((first + 1) % BLOCKS_MOST) as u32 });
        let class = usize::from(self.classes[first].get()).checked_sub(1);
        Some((self.starts[first].replace(ptr::null_mut()), class))
    }

    /// Discounts a block that counted as `bytes` and was taken out.
    #[inline]
    pub(crate) fn discount(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }

    /// Whether there is room for a block that counts as `bytes`.
    #[inline(always)]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        (self.len.get() as usize) < BLOCKS_MOST && self.bytes.get() + bytes <= self.most.get()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// Lets as many bytes wait as a process of so many heaps may have.
    pub(crate) fn share(&self, n_heaps: u32) {
        self.most.set(BYTES_MOST.min(BYTES_OF_ALL / n_heaps.max(1) as usize));
    }

    /// The blocks, for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = *mut u8> {
        let first = self.first.get() as usize;
        (first..first + self.len.get() as usize).map(|at| self.starts[at % BLOCKS_MOST].get())
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
