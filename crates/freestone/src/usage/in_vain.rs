//! What went back inside spans in vain: OS pages that were faulted in again soon.
//!
//! A thread whose blocks come and go, but for a few that keep their spans from becoming empty, would give the OS pages inside these spans back whenever more is free there
//! than the bound, and fault them in again a moment later. So half of what was faulted in again may stay free inside spans. Each decay time half of that is
//! forgotten, because it is not seen whether what stays is used. `docs/decisions/0081-memory-of-bursts-that-repeat.md` has the measurements.
//! `page::policy::churn` does the same for whole runs of pages.
//!
//! What was faulted in again is told from the bytes of all spans that have no memory, or had none when they ended (`span::Uncarved`): as many as these are less
//! than at the last flush that asked.
//!
//! All counters are relaxed, and stored without regard for other threads: none guards memory, and what is lost between two costs a few page faults.

use freestone_base::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Of what went back in vain, one part in this many may stay.
const WASTED_SHARE: u64 = 2;

/// See the module header.
#[derive(Debug)]
pub(crate) struct InVain {
    /// Bytes that went back and were faulted in again.
    wasted: AtomicU64,
    /// The bytes without memory, of spans that have ended, too, when what was faulted in again was last counted.
    uncarved: AtomicI64,
    /// When the present period began. A period lasts a decay time.
    period_start_ms: AtomicU32,
}

impl InVain {
    /// Nothing.
    pub(super) const fn new() -> Self {
        Self { wasted: AtomicU64::new(0), uncarved: AtomicI64::new(0), period_start_ms: AtomicU32::new(0) }
    }

    /// Counts what was faulted in again: of all spans, so many bytes have no memory now, or had none when they ended. Returns the bytes that may stay free inside spans, whatever the bound.
    pub(crate) fn allowed_bytes(&self, uncarved: i64, now_ms: u32, decay_ms: u32) -> u64 {
        let (wasted, before) = (self.wasted.load(Ordering::Relaxed), self.uncarved.load(Ordering::Relaxed));
        let wasted = if now_ms.wrapping_sub(self.period_start_ms.load(Ordering::Relaxed)) < decay_ms {
            wasted + (before - uncarved).max(0) as u64
        } else {
            // What was faulted in may have been so after more than a decay time.
            self.period_start_ms.store(now_ms, Ordering::Relaxed);
            wasted / 2
        };
        self.uncarved.store(uncarved, Ordering::Relaxed);
        self.wasted.store(wasted, Ordering::Relaxed);
        wasted / WASTED_SHARE
    }
}

#[cfg(test)]
mod tests;
