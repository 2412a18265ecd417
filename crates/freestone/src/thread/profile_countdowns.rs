//! How far a heap is from its next samples of the heap profile, and what its thread knows of its stack for them.
//!
//! Threads: only the heap's thread uses it.

use crate::size_class::PerClass;
use core::cell::Cell;
use freestone_os::stack::OwnStack;

/// See the module header. Zero is a heap that has drawn none.
#[derive(Debug)]
pub(crate) struct ProfileCountdowns {
    /// The session that the others were drawn in.
    pub(super) session: Cell<u32>,
    /// What the heap's thread knows of its stack.
    pub(super) own_stack: OwnStack,
    /// Bytes of large blocks until the next sampled one.
    pub(super) large: Cell<i64>,
    /// What `Bins::frees` is when the next block of a class is chosen, if no blocks come into the bin otherwise; in a watched heap, allocations until the
    /// next sampled one. 0 before that was drawn.
    pub(super) at: PerClass<Cell<u64>>,
    /// Where the room of a class's bin ends with the block that is chosen next: 1 more than the room that was withdrawn for that, which the bin gets behind it.
    /// 0 where it ends before.
    pub(super) cut: PerClass<Cell<i64>>,
}

impl ProfileCountdowns {
    /// Room of a class's bin that was withdrawn.
    #[inline(always)]
    pub(super) fn withdrawn(&self, class: usize) -> i64 {
        (self.cut[class].get() - 1).max(0)
    }

    /// Forgets everything: another heap begins in the record.
    pub(crate) fn begin(&self) {
        self.session.set(0);
        self.change_thread();
    }

    /// Forgets what is known of the stack: another thread gets the heap. The countdowns go on, for they have no memory of who allocated.
    pub(crate) fn change_thread(&self) {
        self.own_stack.forget();
    }
}
