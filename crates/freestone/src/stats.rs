//! What the allocator holds, as one snapshot that adds up.
//!
//! ```text
//! committed = live + cached + fragmented + dirty + metadata
//!  live        in blocks that the program holds (whole blocks, not what was asked for)
//!  cached      in free blocks kept by threads, or on their way home
//!  fragmented  in spans, but in no block that is out: free, or never carved
//!  dirty       in free runs that still have memory behind them, and in those that the kernel is taking back
//!  metadata    thread heaps; span records, bitmaps and page map as far as pages were ever in use
//! ```
//!
//! Where every byte of every block was written, that is what the kernel counts as resident.
//!
//! Layer: beside `config`; only the numbers. `api::snapshot` takes them.

/// A snapshot. Bytes unless the name says otherwise; `committed` is address space that may have memory behind it, an upper bound of
/// what the kernel counts as resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks that the program holds.
    pub live: u64,
    /// Free blocks kept by threads, or on their way home.
    pub cached: u64,
    /// The rest of the spans: free blocks, and what was never carved.
    pub fragmented: u64,
    /// Free runs with memory behind them.
    pub dirty: u64,
    /// What the allocator needs for itself.
    pub metadata: u64,
    /// The sum of the above.
    pub committed: u64,
    /// The most that `committed` was, without metadata.
    pub peak_committed: u64,
    /// The most that `live` was seen to be: exact to within a span a thread and class, and what other threads keep of large blocks.
    pub peak_live: u64,
    /// Given back to the operating system, ever.
    pub purged: u64,
    /// Of `dirty`: free for less than a quarter of the decay time, than half of it, than all of it, and longer. (Runs that the kernel
    /// would not take are in none.)
    pub dirty_by_age: [u64; 4],
    /// Handed out without memory behind it, ever: a page fault for each OS page of it that was written.
    pub fresh: u64,
    /// Blocks allocated, ever. A count.
    pub n_allocations: u64,
    /// Blocks freed, ever. A count.
    pub n_frees: u64,
    /// Blocks freed by a thread that did not own them, ever. A count.
    pub n_remote_frees: u64,
    /// Atomic operations it took to hand them over. A count.
    pub n_handovers: u64,
    /// Thread heaps alive now. A count.
    pub n_threads: u32,
}

impl Stats {
    /// Settles numbers read from running threads so that the equation of the module header holds and nothing is negative.
    ///
    /// `out` are bytes of blocks out of their spans, `spans` bytes of small spans, `large` bytes of large blocks, and of those that are free
    /// and kept.
    #[must_use]
    pub fn settle(mut self, live_small: i64, out: i64, spans: u64, large: (u64, u64)) -> Self {
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
