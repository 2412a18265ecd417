//! Starting the allocator, once. A fork waits for the thread that starts it: in the child no thread would go on.
//!
//! Lock: [`RANK`].

use freestone_base::lock::{Forker, Lock};
use freestone_base::once::Once;
use freestone_os::Futex;

/// Rank of the lock: below that of every lock that starting takes.
const RANK: u8 = 7;

/// Whether the allocator has started.
pub(super) struct Start {
    done: Once<Futex>,
    starting: Lock<(), Futex, RANK>,
}

impl Start {
    /// Not yet.
    pub(super) const fn new() -> Self {
        Self { done: Once::new(), starting: Lock::new(()) }
    }

    /// Whether it has.
    pub(super) fn is_done(&self) -> bool {
        self.done.is_done()
    }

    /// As [`Once::call`].
    pub(super) fn call(&self, attempt: impl FnOnce() -> bool) -> bool {
        let _starting = self.starting.lock();
        self.done.call(attempt)
    }

    /// Takes the lock, before a fork.
    pub(super) fn lock_for_fork(&self) {
        self.starting.acquire_raw();
    }

    /// Releases it, in parent or child.
    pub(super) fn unlock_after_fork(&self, forker: Forker) {
        self.starting.release_raw(forker);
    }
}
