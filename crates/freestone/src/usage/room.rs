//! Room that bins borrow beyond their share, in a process of many threads.
//!
//! Where there are many threads, a bin's share of what all bins of its class may hold is a few blocks, or one: enough for all of them together. But most of them wait
//! most of the time, and the few that run would flush and refill at nearly every call. So all bins together may borrow [`LENT_MOST`] bytes of room. A bin
//! may borrow until it has as much as is left for others: one alone gets half of it, and `n` that want more get one part in `n + 1` each. That is the rule of dynamic
//! thresholds (A. K. Choudhury and E. L. Hahne, Dynamic queue length thresholds for shared-memory packet switches, 1998).
//! `docs/decisions/0088-few-of-many-threads-run.md` has the measurements.
//!
//! The counter is relaxed, and read and changed in two steps: it guards no memory, and bins that borrow at once may get a little more.

use crate::size_class::block_bytes;
use freestone_base::sync::{AtomicI64, Ordering};

/// Bytes of room that all bins together may borrow.
const LENT_MOST: i64 = 8 << 20;

/// See the module header.
#[derive(Debug)]
pub(crate) struct SharedRoom {
    lent_bytes: AtomicI64,
}

impl SharedRoom {
    /// None is lent.
    pub(super) const fn new() -> Self {
        Self { lent_bytes: AtomicI64::new(0) }
    }

    /// Lends a bin that has borrowed room for `has` blocks of `class` room for more, up to `lacks`. Returns for how many.
    pub(crate) fn lend(&self, class: usize, has: u32, lacks: u32) -> u32 {
        let bytes = block_bytes(class) as i64;
        let left = (LENT_MOST - self.lent_bytes.load(Ordering::Relaxed)) / bytes;
        let lent = i64::from(lacks).min((left - i64::from(has)) / 2).max(0);
        if lent > 0 {
            self.lent_bytes.fetch_add(lent * bytes, Ordering::Relaxed);
        }
        lent as u32
    }

    /// Takes back the room for `blocks` of `class` that a bin had borrowed.
    pub(crate) fn take_back(&self, class: usize, blocks: u32) {
        self.lent_bytes.fetch_sub(i64::from(blocks) * block_bytes(class) as i64, Ordering::Relaxed);
    }

    /// Forgets what was lent, in a forked child: most of it was to threads that do not exist there. What the child's own thread, explicit heaps and those that wait for
    /// a thread give back is then lent twice, if ever.
    pub(crate) fn forget_lent(&self) {
        self.lent_bytes.store(0, Ordering::Relaxed);
    }

    /// Bytes of room that are lent.
    #[cfg(test)]
    pub(crate) fn lent_bytes(&self) -> i64 {
        self.lent_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
