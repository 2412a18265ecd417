//! Counts of a heap that are not yet published to the sums over all heaps (`usage`).
//!
//! ```text
//!  free bytes inside its spans      published with every flush, and when 256 KiB of what was published are taken again
//!  live bytes of a class            if they have changed by 256 KiB, when a bin overflows, gets another span or blocks that came back, or when a batch
//!                                   of others' blocks ends with one of the class; when a span of the class comes or goes, and at the heap's end;
//!                                   those of all classes now and then (`route`)
//!  live bytes of large blocks       when the page heap is needed, or when more would be live than was published
//! ```
//!
//! Invariant: the sum never counts fewer bytes of large blocks than are live, only more: `unpublished_large` is 0 or negative between operations.
//! Threads: only the heap's thread uses it; any thread may read how many large blocks it has counted.

use crate::size_class::{PerClass, block_bytes};
use crate::usage::Usage;
use core::cell::Cell;
use freestone_base::count;
use freestone_base::sync::{AtomicU64, Ordering};

/// A change of the live bytes of a class that is worth an atomic operation.
const MUCH_BYTES: i64 = 256 << 10;

/// See the module header. Zero is right for a heap that has counted nothing.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Bytes that came free inside this heap's spans, less those that were taken.
    unpublished_free: Cell<i64>,
    /// Blocks of each class that were published to the sum of live bytes.
    published_live: PerClass<Cell<i64>>,
    /// Bytes of large blocks that the program holds beyond those that were published.
    unpublished_large: Cell<i64>,
    /// Large blocks allocated from the page heap, ever; those from the cache are counted there.
    large_allocs: AtomicU64,
    /// Large blocks freed elsewhere than into the cache, ever.
    large_frees: AtomicU64,
}

impl Accounts {
    /// Nothing counted.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            unpublished_free: Cell::new(0),
            published_live: PerClass::new([const { Cell::new(0) }; crate::size_class::N_CLASSES]),
            unpublished_large: Cell::new(0),
            large_allocs: AtomicU64::new(0),
            large_frees: AtomicU64::new(0),
        }
    }

    /// Counts blocks that became free inside the heap's spans (or, negative, are free no more).
    #[inline]
    pub(crate) fn add_free(&self, class: usize, blocks: i64) {
        self.unpublished_free.set(self.unpublished_free.get() + blocks * block_bytes(class) as i64);
    }

    /// Publishes what became free inside the heap's spans.
    pub(crate) fn publish_free(&self, usage: &Usage) {
        let bytes = self.unpublished_free.replace(0);
        if bytes != 0 {
            usage.add_free_in_spans(bytes);
        }
    }

    /// Publishes that what was free inside the heap's spans is no longer, if that is much.
    pub(crate) fn publish_taken(&self, usage: &Usage) {
        if self.unpublished_free.get() <= -MUCH_BYTES {
            self.publish_free(usage);
        }
    }

    /// Bytes that became free inside the heap's spans and were not published.
    pub(crate) fn unpublished_free(&self) -> i64 {
        self.unpublished_free.get()
    }

    /// Publishes that the program holds `live` blocks of a class from this heap.
    pub(crate) fn publish_live(&self, class: usize, live: i64, usage: &Usage) {
        let before = self.published_live[class].replace(live);
        if live != before {
            usage.publish_live((live - before) * block_bytes(class) as i64);
        }
    }

    /// Whether the sum of live bytes would change much if `live` blocks of a class were published.
    #[inline(always)]
    pub(crate) fn has_changed_much(&self, class: usize, live: i64) -> bool {
        let change_bytes = (live - self.published_live[class].get()) * block_bytes(class) as i64;
        // One comparison for both directions.
        (change_bytes + MUCH_BYTES) as u64 > 2 * MUCH_BYTES as u64
    }

    /// Counts bytes of large blocks that were handed out (or, negative, freed) without the page heap. Returns whether the sum counts less than is
    /// live now, so that the change has to be published.
    #[inline(always)]
    #[must_use]
    pub(crate) fn add_large(&self, change_bytes: i64) -> bool {
        let unpublished = self.unpublished_large.get() + change_bytes;
        self.unpublished_large.set(unpublished);
        unpublished > 0
    }

    /// Publishes what the program holds now in large blocks: what was counted, and a change.
    pub(crate) fn publish_large(&self, change_bytes: i64, usage: &Usage) {
        usage.publish_live(self.unpublished_large.replace(0) + change_bytes);
    }

    /// Counts a large block that the page heap has handed out.
    pub(crate) fn count_large_alloc(&self) {
        count::increment(&self.large_allocs);
    }

    /// Counts a large block that is freed, and not into the cache.
    pub(crate) fn count_large_free(&self) {
        count::increment(&self.large_frees);
    }

    /// Large blocks allocated and freed without the cache, ever.
    pub(crate) fn large_allocs_and_frees(&self) -> (u64, u64) {
        (self.large_allocs.load(Ordering::Relaxed), self.large_frees.load(Ordering::Relaxed))
    }

    /// Bytes of large blocks that are live beyond those that were published: 0 or negative between operations.
    pub(crate) fn unpublished_large(&self) -> i64 {
        self.unpublished_large.get()
    }
}

#[cfg(test)]
mod tests;
