//! The page heap's numbers, as one snapshot.

use freestone_base::sync::{AtomicU32, AtomicU64, Ordering};
use freestone_base::units::Pages;

/// Pages of each kind, and counts of events.
///
/// Wide because: each kind and each event is one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageStats {
    /// Pages in small spans.
    pub small_pages: u64,
    /// Pages in large blocks, and in the large-run caches.
    pub large_pages: u64,
    /// Pages that contain records of heaps.
    pub metadata_pages: u64,
    /// Free pages with memory behind them that can be purged.
    pub dirty_pages: u64,
    /// Free pages that the kernel would not take back, or takes when it needs them.
    pub stuck_pages: u64,
    /// Free pages that the kernel is taking back.
    pub purging_pages: u64,
    /// Free pages without memory.
    pub clean_pages: u64,
    /// Pages every access to which faults.
    pub guard_pages: u64,
    /// Free pages that are not mapped.
    pub reserved_pages: u64,
    /// Pages where another part of the program has mapped something.
    pub foreign_pages: u64,
    /// Bytes given back to the operating system, ever.
    pub purged_bytes: u64,
    /// Calls that gave memory back, ever.
    pub n_purges: u64,
    /// Large blocks allocated from the page heap, ever.
    pub large_allocs: u64,
    /// Large blocks freed to the page heap, ever.
    pub large_frees: u64,
    /// The most pages that were in use, or free with memory behind them, at once.
    pub peak_pages: u64,
    /// Bytes handed out without memory behind them, ever: a page fault for each OS page of them that is written.
    pub fresh_bytes: u64,
}

impl PageStats {
    /// Free pages that may have memory behind them.
    #[must_use]
    pub(crate) fn free_with_memory(&self) -> u64 {
        self.dirty_pages + self.stuck_pages + self.purging_pages
    }
}

/// Counts of events under the page heap's lock. The fields are those of [`PageStats`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    pub(super) large_allocs: u64,
    pub(super) large_frees: u64,
    pub(super) fresh_bytes: u64,
}

impl Events {
    /// No events yet.
    pub(super) const NONE: Self = Self { large_allocs: 0, large_frees: 0, fresh_bytes: 0 };
}

/// Counts of what was given back: threads count here at once, for from inside spans they give back without the page heap's lock.
pub(super) struct Purges {
    bytes: AtomicU64,
    calls: AtomicU64,
}

impl Purges {
    /// None yet.
    pub(super) const fn none() -> Self {
        Self { bytes: AtomicU64::new(0), calls: AtomicU64::new(0) }
    }

    /// Counts a call that the kernel may have refused.
    pub(super) fn count(&self, purged: bool, bytes: usize) {
        if purged {
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Bytes given back.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Calls that gave memory back.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// What is counted about runs ahead (`page::ahead`).
pub(super) struct Ahead {
    /// Their pages.
    pages: AtomicU32,
    /// Times that memory became dirty.
    dirtied: AtomicU32,
}

impl Ahead {
    /// None.
    pub(super) const fn none() -> Self {
        Self { pages: AtomicU32::new(0), dirtied: AtomicU32::new(0) }
    }

    /// Pages of runs ahead.
    pub(super) fn pages(&self) -> Pages {
        Pages(self.pages.load(Ordering::Relaxed))
    }

    /// Counts pages that are ahead.
    pub(super) fn add(&self, pages: Pages) {
        self.pages.fetch_add(pages.0, Ordering::Relaxed);
    }

    /// Counts pages that are ahead no more.
    pub(super) fn subtract(&self, pages: Pages) {
        self.pages.fetch_sub(pages.0, Ordering::Relaxed);
    }

    /// Times that memory became dirty: while the number stays the same, a search that found no dirty run would find none again.
    pub(super) fn dirtied(&self) -> u32 {
        self.dirtied.load(Ordering::Relaxed)
    }

    /// Notes that memory became dirty.
    pub(super) fn note_dirtied(&self) {
        self.dirtied.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_stuck_and_purging_pages_may_have_memory() {
        let stats = PageStats { dirty_pages: 3, stuck_pages: 50, purging_pages: 700, ..PageStats::default() };
        assert_eq!(stats.free_with_memory(), 753);
    }

    #[test]
    fn purges_that_the_kernel_refused_do_not_count() {
        let purges = Purges::none();
        purges.count(true, 100);
        purges.count(false, 1000);
        purges.count(true, 20);
        assert_eq!((purges.bytes(), purges.calls()), (120, 2));
        purges.count(true, 7);
        purges.count(false, 1000);
        purges.count(true, 3);
        assert_eq!((purges.bytes(), purges.calls()), (130, 4));
    }
}
