//! How much of the heap the program uses, summed over all thread heaps.
//!
//! Each thread heap counts for itself and publishes the change on slow paths, so each sum lags by what the threads
//! have not published yet. Policies and statistics need no more precision.
//!
//! Layer: above `config`, below `page`. All counters are relaxed: none of them guards memory. Cost: one atomic addition for each publication.

mod in_vain;
mod room;

use crate::config::Settings;
use crate::size_class::{N_CLASSES, PerClass};
use crate::usage::in_vain::InVain;
use crate::usage::room::SharedRoom;
use freestone_base::sync::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// About what a heap holds and has not published: 256 KiB of each of a few classes.
const UNPUBLISHED_BYTES: i64 = 4 << 20;

/// The sums. See the module header.
#[derive(Debug)]
pub(crate) struct Usage {
    n_heaps: AtomicU32,
    n_thread_heaps: AtomicU32,
    /// Whether there ever was a heap.
    has_had_heaps: AtomicBool,
    /// Bytes of free blocks inside spans, owned or abandoned.
    free_in_spans: AtomicI64,
    live_bytes: AtomicI64,
    peak_live_bytes: AtomicU64,
    /// Blocks of each class that are out of spans without an owner: heaps count those of their own spans.
    left_out: PerClass<AtomicI64>,
    in_vain: InVain,
    room: SharedRoom,
}

impl Usage {
    /// No heaps, nothing in use.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            n_heaps: AtomicU32::new(0),
            n_thread_heaps: AtomicU32::new(0),
            has_had_heaps: AtomicBool::new(false),
            free_in_spans: AtomicI64::new(0),
            live_bytes: AtomicI64::new(0),
            peak_live_bytes: AtomicU64::new(0),
            left_out: PerClass::new([const { AtomicI64::new(0) }; N_CLASSES]),
            in_vain: InVain::new(),
            room: SharedRoom::new(),
        }
    }

    /// What went back inside spans in vain.
    pub(crate) fn in_vain(&self) -> &InVain {
        &self.in_vain
    }

    /// Room that bins borrow where there are many threads.
    pub(crate) fn room(&self) -> &SharedRoom {
        &self.room
    }

    /// Heaps alive. It may change while a policy uses the number.
    #[must_use]
    pub(crate) fn n_heaps(&self) -> u32 {
        self.n_heaps.load(Ordering::Relaxed)
    }

    /// Heaps alive that are threads', or stand in for one. It may change while a policy uses the number.
    #[must_use]
    pub(crate) fn n_thread_heaps(&self) -> u32 {
        self.n_thread_heaps.load(Ordering::Relaxed)
    }

    /// Sets how many heaps are alive, and how many of them are explicit. For the registry of heaps, under its lock.
    pub(crate) fn set_n_heaps(&self, n: u32, n_explicit: u32) {
        self.n_heaps.store(n, Ordering::Relaxed);
        self.n_thread_heaps.store(n - n_explicit, Ordering::Relaxed);
        self.has_had_heaps.store(true, Ordering::Relaxed);
    }

    /// Whether there ever was a heap: if not, nothing was ever allocated.
    #[must_use]
    pub(crate) fn has_had_heaps(&self) -> bool {
        self.has_had_heaps.load(Ordering::Relaxed)
    }

    /// Adds bytes that became free inside spans; negative for bytes that are no longer free there.
    pub(crate) fn add_free_in_spans(&self, change_bytes: i64) {
        self.free_in_spans.fetch_add(change_bytes, Ordering::Relaxed);
    }

    /// Bytes of free blocks inside spans, as far as the heaps have published them.
    pub(crate) fn free_in_spans(&self) -> i64 {
        self.free_in_spans.load(Ordering::Relaxed)
    }

    /// Whether more is free inside spans than the dirty bound allows for what is live; or than half of that if it `was_more` than all.
    #[must_use]
    pub(crate) fn exceeds_bound_in_spans(&self, settings: &Settings, was_more: bool) -> bool {
        let or_zero = |bytes: &AtomicI64| u64::try_from(bytes.load(Ordering::Relaxed)).unwrap_or(0);
        or_zero(&self.free_in_spans) > settings.dirty_bound_bytes(or_zero(&self.live_bytes)) >> u32::from(was_more)
    }

    /// Adds to the bytes the program holds, and raises the peak if the sum passes it. The sum may be negative for a moment: one thread
    /// publishes that it freed what another has not yet published to have allocated.
    pub(crate) fn publish_live(&self, change_bytes: i64) {
        let live = self.live_bytes.fetch_add(change_bytes, Ordering::Relaxed) + change_bytes;
        self.raise_peak(u64::try_from(live).unwrap_or(0));
    }

    /// Raises the peak to what was seen to be live. Statistics count what threads have not published yet.
    pub(crate) fn raise_peak(&self, live_bytes: u64) {
        if live_bytes > self.peak_live_bytes.load(Ordering::Relaxed) {
            self.peak_live_bytes.fetch_max(live_bytes, Ordering::Relaxed);
        }
    }

    /// The sum of live bytes.
    #[cfg(test)]
    pub(crate) fn live_bytes(&self) -> i64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// The most bytes that were live at once, as far as the threads had published, or statistics had seen.
    #[must_use]
    pub(crate) fn peak_live_bytes(&self) -> u64 {
        self.peak_live_bytes.load(Ordering::Relaxed)
    }

    /// Bytes by which less is live than at the peak, and what that may lack of what heaps had not published.
    pub(crate) fn below_peak(&self) -> i64 {
        let unpublished = i64::from(self.n_heaps()) * UNPUBLISHED_BYTES;
        self.peak_live_bytes() as i64 - self.live_bytes.load(Ordering::Relaxed) + unpublished
    }

    /// Counts blocks that are out of spans whose heap ends; or, negative, that come back, or are out of spans that a heap adopts.
    pub(crate) fn count_left_out(&self, class: usize, blocks: i64) {
        self.left_out[class].fetch_add(blocks, Ordering::Relaxed);
    }

    /// Blocks of `class` that are out of spans without an owner.
    #[must_use]
    pub(crate) fn left_out(&self, class: usize) -> i64 {
        self.left_out[class].load(Ordering::Relaxed)
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
