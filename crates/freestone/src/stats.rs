//! What the allocator holds: one snapshot whose numbers add up.
//!
//! ```text
//! committed = live + cached + fragmented + dirty + metadata
//!  live        in blocks that the program holds (whole blocks, not requested sizes)
//!  cached      in free blocks that threads cache, or that are in flight to their spans
//!  fragmented  in spans, but in no block that is out of its span: free, or never carved
//!  dirty       in free runs that still have memory behind them, and in those that are being purged
//!  metadata    thread heaps; span records, bitmaps and page map up to the high-water mark
//! ```
//!
//! When every byte of every block has been written, `committed` is what the kernel counts as resident.
//!
//! Layer: beside `config`; only the numbers. `api::snapshot` takes them.

/// A snapshot of what the allocator holds and has done. Fields are bytes unless they are named `n_…`.
///
/// `committed` is address space that may have memory behind it: an upper bound of what the kernel counts as resident. It is the sum of
/// `live`, `cached`, `fragmented`, `dirty` and `metadata`.
///
/// ```
/// use freestone::Freestone;
///
/// #[global_allocator]
/// static ALLOCATOR: Freestone = Freestone;
///
/// let stats = ALLOCATOR.stats();
/// let sum = stats.live + stats.cached + stats.fragmented + stats.dirty + stats.metadata;
/// assert_eq!(stats.committed, sum);
/// assert!(stats.n_allocations >= stats.n_frees);
/// ```
// Wide because: it is one field for each figure that a program can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks that the program holds, in full: at least the requested sizes.
    pub live: u64,
    /// Free blocks that threads cache, or that are in flight to their spans.
    pub cached: u64,
    /// The rest of the spans: free blocks in them, and what was never carved into blocks.
    pub fragmented: u64,
    /// Free page runs that have memory behind them.
    pub dirty: u64,
    /// Metadata: thread heaps; span records, bitmaps and page map up to the high-water mark.
    pub metadata: u64,
    /// The sum of the above.
    pub committed: u64,
    /// The most pages that were in use, for metadata, or free with memory behind them at once. (Not span records, bitmaps and page map.)
    pub peak_committed: u64,
    /// The most that `live` was seen to be. May be too low by a span per thread and size class, and by the large blocks in threads' caches.
    pub peak_live: u64,
    /// Given back to the operating system since the start.
    pub purged: u64,
    /// Parts of `dirty` by age: free for less than a quarter of the decay time, less than half, less than all of it, and longer. (Runs that
    /// the kernel refused to take back are in none.)
    pub dirty_by_age: [u64; 4],
    /// Page runs handed out without memory behind them since the start: each OS page of them that was written cost a page fault.
    pub fresh: u64,
    /// Blocks allocated since the start.
    pub n_allocations: u64,
    /// Blocks freed since the start.
    pub n_frees: u64,
    /// Blocks freed in a span that another heap owned, since the start.
    pub n_remote_frees: u64,
    /// Batches in which those blocks were handed to their owners, one atomic operation each.
    pub n_handovers: u64,
    /// Heaps alive now: one per thread that has allocated, and explicit ones.
    pub n_threads: u32,
}

impl Stats {
    /// Adjusts numbers read from running threads so that the equation of the module header holds and nothing is negative.
    ///
    /// All in bytes: `live_small` in live small blocks, `out` in blocks that are out of their spans, `spans` in small spans; `large` in large
    /// blocks, and the part of them that is free and cached.
    #[must_use]
    pub(crate) fn settle(mut self, live_small: i64, out: i64, spans: u64, large: (u64, u64)) -> Self {
        let out = u64::try_from(out).unwrap_or(0).min(spans);
        let live_small = u64::try_from(live_small).unwrap_or(0).min(out);
        let (large, kept) = (large.0, large.1.min(large.0));
        self.live = live_small + large - kept;
        self.cached = out - live_small + kept;
        self.fragmented = spans - out;
        self.committed = self.live + self.cached + self.fragmented + self.dirty + self.metadata;
        self.peak_live = self.peak_live.max(self.live);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_at_different_moments_still_add_up() {
        for (live, out, spans) in [(100, 200, 1000), (300, 200, 1000), (-5, -7, 1000), (5000, 5000, 1000)] {
            let stats = Stats { dirty: 10, metadata: 20, ..Stats::default() }.settle(live, out, spans, (64, 16));
            assert_eq!(stats.committed, 64 + spans + 30);
            assert_eq!(stats.live + stats.cached + stats.fragmented, 64 + spans);
        }
    }
}
