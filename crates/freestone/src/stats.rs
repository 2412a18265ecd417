//! What the allocator holds and has done: figures that add up, and their text for monitoring.
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
//! When every byte of every block has been written, `committed` less `uncarved`, a part of `fragmented`, is what the kernel counts as resident. `live`, `cached` and the counts of
//! allocations and frees are the sums of the same figures over the size classes and the large blocks.
//!
//! | file | owns |
//! |---|---|
//! | [`rows`] | what there is one of for each size class and each heap |
//! | [`details`] | all of it together |
//! | [`figures`] | the table of all figures: name, unit, meaning |
//! | [`open_metrics`], [`json`] | the figures as text |
//! | [`live_page`] | the figures as the page of the option `live` |
//!
//! Layer: beside `config`; only the numbers. `api::snapshot` takes them.

pub(crate) mod details;
pub(crate) mod figures;
pub(crate) mod json;
pub(crate) mod live_page;
pub(crate) mod open_metrics;
pub(crate) mod rows;

pub use details::Details;
use rows::ClassStats;

/// The amount of memory that a density is of: an OS page, as most machines have it.
const DENSITY_UNIT: u64 = 4096;

/// A snapshot of what the allocator holds and has done. Fields are bytes unless they are named `n_…`.
///
/// `committed` is address space that may have memory behind it. It is the sum of `live`, `cached`, `fragmented`, `dirty` and `metadata`. Of that,
/// [`Stats::resident`] is an upper bound of what the kernel counts as resident.
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
#[non_exhaustive]
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
    /// The part of `fragmented` that has no memory: OS pages of spans that were never carved into blocks, or that went back since. 0 where the kernel is
    /// asked for memory ahead of need (options `prefault` and `thp=on`), may give it unasked (huge pages for all), or takes it back late (`purge=free`).
    pub uncarved: u64,
    /// The most pages that were in use, for metadata, or free with memory behind them at once. (Not span records, bitmaps and page map.)
    pub peak_committed: u64,
    /// The most that `live` was seen to be. May be off by 256 KiB, or a span if that is longer, per thread and size class, and too low by the large
    /// blocks in threads' caches.
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
    /// `committed` less `uncarved`: what the kernel counts as resident, if every block has been written.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// let _held = vec![1_u8; 100];
    /// let stats = ALLOCATOR.stats();
    /// assert!(stats.live < stats.resident() && stats.resident() <= stats.committed);
    /// ```
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.committed.saturating_sub(self.uncarved)
    }

    /// The density: `live` in each 4096 bytes of [`Stats::resident`], on average. 0 before anything is committed.
    ///
    /// ```
    /// use freestone::Freestone;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: Freestone = Freestone;
    ///
    /// assert!(ALLOCATOR.stats().density() < 4096);
    /// ```
    #[must_use]
    pub fn density(&self) -> u64 {
        self.live.saturating_mul(DENSITY_UNIT).checked_div(self.resident()).unwrap_or(0)
    }

    /// Sums the rows up, and makes them fit: numbers read from running threads are of different moments.
    ///
    /// All in bytes: `spans` in small spans, `guarded` in live blocks between closed pages, which count as `live` and are in no span of their
    /// class. Afterwards no row has more blocks out than the spans hold, and `committed` is what the page heap counted.
    #[must_use]
    pub(crate) fn settle(mut self, rows: &mut [ClassStats], spans: u64) -> Self {
        let is_small = |row: &&mut ClassStats| row.block_bytes != 0;
        let out: u64 = rows.iter_mut().filter(is_small).map(|row| row.live + row.cached).sum();
        let mut excess = out.saturating_sub(spans);
        for row in rows.iter_mut().filter(is_small) {
            row.cached -= take_whole_blocks(&mut excess, row.cached, row.block_bytes);
        }
        for row in rows.iter_mut().filter(is_small) {
            row.live -= take_whole_blocks(&mut excess, row.live, row.block_bytes);
        }
        let out: u64 = rows.iter_mut().filter(is_small).map(|row| row.live + row.cached).sum();
        self.fragmented = spans.saturating_sub(out);
        self.uncarved = self.uncarved.min(self.fragmented);
        for row in rows {
            self.live += row.live;
            self.cached += row.cached;
            self.n_allocations += row.n_allocations;
            self.n_frees += row.n_frees;
            self.n_remote_frees += row.n_remote_frees;
        }
        self.committed = self.live + self.cached + self.fragmented + self.dirty + self.metadata;
        self.peak_live = self.peak_live.max(self.live);
        self
    }
}

/// Takes whole blocks that make up `excess`, or all of `bytes`. Returns their bytes.
fn take_whole_blocks(excess: &mut u64, bytes: u64, block_bytes: u64) -> u64 {
    let taken = excess.div_ceil(block_bytes).saturating_mul(block_bytes).min(bytes);
    *excess = excess.saturating_sub(taken);
    taken
}

#[cfg(test)]
mod tests;
