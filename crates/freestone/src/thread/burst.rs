//! When a burst ends: a thread had more blocks of a class than its bin holds, and has freed the last of them.
//!
//! ```text
//!  a flush ─▶ the bin gets room only until the thread's last block of the class is freed ─▶ that free ends the burst
//!  a refill from a span ─▶ the thread needs more memory: no burst has ended
//! ```
//!
//! A thread may sleep after the last free, and no other thread can empty its bins. So the last free of a burst takes the slow path. When a burst
//! ends, bins of classes without a live block are emptied, and bins of the others get room only until *their* last block is freed.
//! `docs/decisions/0008-the-last-block-of-a-burst.md` has the measurements.
//!
//! Threads: only the heap's thread uses it.

use crate::size_class::PerClass;
use core::cell::Cell;

/// See the module header. Zero is right for a heap that had no burst.
#[derive(Debug)]
pub(crate) struct BurstPolicy {
    /// A burst has ended, and since then every allocation was served from a bin.
    has_ended: Cell<bool>,
    /// The classes whose room ends with the thread's last block.
    awaits_last: PerClass<Cell<bool>>,
}

impl BurstPolicy {
    /// No burst.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            has_ended: Cell::new(false),
            awaits_last: PerClass::new([const { Cell::new(false) }; crate::size_class::N_CLASSES]),
        }
    }

    /// The thread needs memory that its bins do not have.
    pub(crate) fn begin(&self) {
        self.has_ended.set(false);
    }

    /// A burst has ended.
    pub(crate) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Called when a bin's room is used up while the thread has `live` blocks of its class. Returns whether that was the last free of a burst.
    pub(crate) fn was_last(&self, class: usize, live: i64) -> bool {
        self.awaits_last[class].replace(false) && live <= 0
    }

    /// Whether the room of a bin should end with the thread's last block: there `is_burst` of its class, or one has ended.
    pub(crate) fn is_on_watch(&self, is_burst: bool) -> bool {
        is_burst || self.has_ended.get()
    }

    /// The room to grant a bin that has `room`, so that the free of the last of `live` blocks takes the slow path; `None` if an earlier free does
    /// that anyway, or if there is no block to wait for.
    #[inline(always)]
    pub(crate) fn await_last(&self, class: usize, live: i64, room: i64) -> Option<i64> {
        let awaits = live > 0 && live <= room + 1;
        if awaits {
            self.awaits_last[class].set(true);
        }
        awaits.then_some(live - 1)
    }

    /// Whether the last block of a class is waited for.
    pub(crate) fn awaits_last(&self, class: usize) -> bool {
        self.awaits_last[class].get()
    }
}

#[cfg(test)]
mod tests;
