//! When a profile is to be written without a request: at so many bytes allocated, and at so much more live than before.
//!
//! ```text
//!  a sample ─▶ allocated bytes ┐
//!              live bytes      ┴▶ reached the mark? ─▶ due, and the mark moves up by its step ─▶ `take`: the slow path that sees it writes the profile
//! ```
//!
//! Both counts are estimates, as all of the profile is. Bytes are in the parts of [`Weight`].
//!
//! Threads: any, a signal handler included: there is no lock. Of two threads that reach a mark at once, one moves it.

use crate::heap_profile::tally::Weight;
use freestone_base::sync::{AtomicBool, AtomicU64, Ordering};

/// A number to be reached, and by how much it moves up then; 0: it is never reached.
#[derive(Debug)]
struct Mark {
    step: AtomicU64,
    next: AtomicU64,
}

impl Mark {
    const fn new() -> Self {
        Self { step: AtomicU64::new(0), next: AtomicU64::new(0) }
    }

    fn set(&self, from: u64, step: u64) {
        self.next.store(from.saturating_add(step), Ordering::Relaxed);
        self.step.store(step, Ordering::Relaxed);
    }

    /// Whether `count` has reached it, and no other thread has seen that. Moves it to one step above `count`.
    fn is_reached(&self, count: u64) -> bool {
        let (step, next) = (self.step.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed));
        let above = count.saturating_add(step);
        step != 0
            && count >= next
            && self.next.compare_exchange(next, above, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct Triggers {
    allocated: Mark,
    live: Mark,
    allocated_bytes: AtomicU64,
    is_due: AtomicBool,
}

impl Triggers {
    /// Nothing is due, ever.
    pub(crate) const fn new() -> Self {
        Self {
            allocated: Mark::new(),
            live: Mark::new(),
            allocated_bytes: AtomicU64::new(0),
            is_due: AtomicBool::new(false),
        }
    }

    /// Makes a profile due when `allocated` bytes more were allocated, and when `growth` bytes more are live than the `peak` so far; 0: never.
    pub(crate) fn set(&self, allocated: u64, growth: u64, peak: u64) {
        self.allocated.set(self.allocated_bytes.load(Ordering::Relaxed), Weight::parts_of(allocated));
        self.live.set(peak, Weight::parts_of(growth));
    }

    /// Whether a profile may become due.
    pub(crate) fn is_set(&self) -> bool {
        (self.allocated.step.load(Ordering::Relaxed) | self.live.step.load(Ordering::Relaxed)) != 0
    }

    /// Notes that a sample was allocated which stands for `weight`.
    pub(crate) fn note_allocated(&self, weight: Weight) {
        let sum = self.allocated_bytes.fetch_add(weight.bytes, Ordering::Relaxed) + weight.bytes;
        if self.allocated.is_reached(sum) {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Notes how much is live.
    pub(crate) fn note_live(&self, live_bytes: u64) {
        if self.live.is_reached(live_bytes) {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a profile is due. It is the caller's to write then, and no other's.
    pub(crate) fn take(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
