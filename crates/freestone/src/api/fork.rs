//! Forking: every lock of the allocator is held while the process is copied.
//!
//! Before: the C library's lock of its list of streams is taken, then every lock of the allocator in order of rank, so that no thread is inside
//! the allocator. After, in the parent: all are released. In the child: the same; `process` then ends what was under way in threads that do not
//! exist in the child.
//!
//! ```text
//!  handlers of others, the last registered first ─▶ lock ─▶ fork ─▶ unlock ─▶ handlers of others, the first registered first
//! ```
//!
//! **Registered first.** Other handlers may allocate, so ours run last before a fork and first after it: a constructor with the first
//! priority registers them, and the shared library is initialised before all others (`-z initfirst`). A handler that was registered
//! earlier all the same (by a shared library's constructor, in a program linked with the archive or with the crate) runs while the locks
//! are held, and may allocate too: the thread that forks passes the locks it holds ([`Futex::begin_fork`]).
//!
//! Several threads may fork at once: the first lock queues them. A fork within a fork handler is part of the outer one.
//!
//! **The list of streams.** glibc's `fork` runs the prepare handlers, ours the last, then locks its list of streams, then its own `malloc`: in this
//! order a thread that holds the list's lock may allocate. Our locks are taken too early for that. While we hold them, `fork` waits for the list,
//! whose holder (`fflush(NULL)`) waits for a stream, whose holder (`getdelim`) allocates and waits for us (glibc's bug 19431). So our handler
//! takes the list's lock first, by the functions that glibc exports for that (`freestone_os::weak_symbols`).
//!
//! | | glibc itself | we |
//! |---|---|---|
//! | before | locks, after our handler: the lock is recursive | lock |
//! | in the parent | unlocks | unlock |
//! | in the child of several threads | resets, before our handler | reset: it is free |
//! | in the child of one thread | nothing | reset: the only thread held it |
//!
//! This relies on `_IO_list_lock`, `_IO_list_unlock` and `_IO_list_resetlock` at version `GLIBC_2.2.5` (on AArch64 `GLIBC_2.17`), which every
//! glibc so far exports. The table agrees with the sources of 2.27, 2.33, 2.36 and 2.42; tested with 2.36.
//!
//! Not covered are the locks that `fork` takes between our handler and the list: that of the database of name services, whose holder may
//! allocate when it reads `/etc/nsswitch.conf` (the first time, or when the file has changed), and in 2.42 that of the list of `popen`'s
//! children, whose holder allocates in `popen` while others are open. Nor is musl covered: its `fork` locks its list of streams after all
//! handlers, too, and it exports no function to lock the list before.
//!
//! **In a signal handler** that has interrupted its own thread within the allocator (`Inside`), a fork takes no lock: it would wait for one that this
//! thread holds, or that a thread holds which waits for this one. The child goes on in the code that was interrupted, as the parent does. If the
//! process had no other thread, its heap is as good as the parent's. If it had, a lock may be held for ever, and heaps of threads that do not exist there stay
//! as they are: POSIX allows such a child no allocation. (POSIX has `fork` among the functions that a handler may call until 2024, `_Fork` since.)
//! Not covered are two threads that fork at once, one of them in such a handler, for it waits in the C library for the list of streams; and
//! a child that goes on in the middle of the recording of a call (the option `record`), whose chunk of the trace is the parent's.

use crate::api::freed_early::FreedEarly;
use crate::api::pressure::Pressure;
use crate::api::start::Start;
use crate::shared::Shared;
use crate::thread::life::Threads;
use freestone_base::lock::{Forker, Parking};
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_os::process::{self, ForkHandler};
use freestone_os::weak_symbols::{lock_streams, reset_streams, unlock_streams};
use freestone_os::{Futex, Inside, System};

/// The parts whose locks are held across a fork, outermost first.
pub(super) struct Locks<'a> {
    pub(super) pressure: &'a Pressure,
    pub(super) start: &'a Start,
    pub(super) threads: &'a Threads<System>,
    pub(super) freed_early: &'a FreedEarly,
    pub(super) shared: &'a Shared<System>,
}

impl Locks<'_> {
    fn lock(&self) {
        // A signal handler that forks in between would wait for these locks.
        let _inside = Inside::begin();
        self.pressure.lock_for_fork();
        // That lock queues threads that fork at once; from here on this thread may enter the locks that it holds.
        Futex::begin_fork();
        self.start.lock_for_fork();
        self.threads.lock_for_fork();
        self.freed_early.lock_for_fork();
        self.shared.lock_for_fork();
    }

    fn unlock(&self, forker: Forker) {
        let _inside = Inside::begin();
        self.shared.unlock_after_fork(forker);
        self.freed_early.unlock_after_fork(forker);
        self.threads.unlock_after_fork(forker);
        self.start.unlock_after_fork(forker);
        Futex::end_fork();
        self.pressure.unlock_after_fork(forker);
    }
}

/// Whether the handlers are registered, and how deep forks are nested.
pub(super) struct Forks {
    is_registered: AtomicBool,
    /// Forks under way inside the one that holds the locks. Only the thread of that fork touches it.
    n_nested: AtomicU32,
}

impl Forks {
    /// No handlers registered.
    pub(super) const fn new() -> Self {
        Self { is_registered: AtomicBool::new(false), n_nested: AtomicU32::new(0) }
    }

    /// Registers the handlers, unless they are registered. If the C library cannot, forking while other threads allocate is not safe; the
    /// loader offers no way to report that.
    pub(super) fn register(&self, before: ForkHandler, in_parent: ForkHandler, in_child: ForkHandler) {
        if !self.is_registered.swap(true, Ordering::Relaxed) {
            let _ = process::at_fork(before, in_parent, in_child);
        }
    }

    /// Takes every lock, before a fork; none if this thread was interrupted inside.
    pub(super) fn lock(&self, locks: &Locks<'_>) {
        if Futex::is_forking() {
            self.n_nested.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if Inside::is_any() {
            return;
        }
        lock_streams();
        locks.lock();
    }

    /// Releases every lock, in the parent; nothing if the fork is part of another one, which still holds them, or took none.
    pub(super) fn unlock_in_parent(&self, locks: &Locks<'_>, forker: Forker) {
        if Futex::is_forking() && !self.leave_nested() {
            locks.unlock(forker);
            unlock_streams();
        }
    }

    /// Releases every lock, in the child; nothing if the fork is part of another one, which still holds them, or took none.
    pub(super) fn unlock_in_child(&self, locks: &Locks<'_>, forker: Forker) {
        if Futex::is_forking() && !self.leave_nested() {
            locks.unlock(forker);
            reset_streams();
        }
    }

    /// Ends a fork within another one; `false` if the fork that ends is not nested.
    fn leave_nested(&self) -> bool {
        let is_nested = self.n_nested.load(Ordering::Relaxed) > 0;
        if is_nested {
            self.n_nested.fetch_sub(1, Ordering::Relaxed);
        }
        is_nested
    }
}

#[cfg(test)]
mod tests;
