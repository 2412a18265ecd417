//! Forking: every lock of the allocator is held while the process is copied.
#![allow(unsafe_code)]
//!
//! Before: the C library's lock of its list of streams is taken (`stdio`), then every lock of the allocator in order of rank, so that no thread
//! is inside the allocator. After, in the parent: all are released. In the child: the same; `process` then ends what was under way in threads that
//! do not exist there.
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
//! # Safety
//! The C library runs the handlers of a fork in the thread that forks, and in its copy.

use crate::api::pressure::Pressure;
use crate::api::stdio;
use crate::shared::Shared;
use crate::thread::life::Threads;
use freestone_base::lock::Parking;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_os::{Futex, Linux};

/// A fork handler.
type Handler = unsafe extern "C" fn();

/// The parts whose locks are held across a fork, outermost first.
pub(super) struct Locks<'a> {
    pub(super) pressure: &'a Pressure,
    pub(super) threads: &'a Threads<Linux>,
    pub(super) shared: &'a Shared<Linux>,
}

impl Locks<'_> {
    fn lock(&self) {
        self.pressure.lock_for_fork();
        // That lock queues threads that fork at once; from here on this thread may enter the locks that it holds.
        Futex::begin_fork();
        self.threads.lock_for_fork();
        self.shared.lock_for_fork();
    }

    /// # Safety
    /// - This thread, or the one it is the copy of, called [`Locks::lock`] on the same parts, and nothing has released them since.
    unsafe fn unlock(&self) {
        // SAFETY: each part was locked by this thread or the one it is a copy of (this function's contract).
        unsafe {
            self.shared.unlock_after_fork();
            self.threads.unlock_after_fork();
            Futex::end_fork();
            self.pressure.unlock_after_fork();
        }
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
    pub(super) fn register(&self, before: Handler, in_parent: Handler, in_child: Handler) {
        if !self.is_registered.swap(true, Ordering::Relaxed) {
            // SAFETY: the handlers are functions of the type asked for, and exist as long as the object, which is never unloaded (`pin`).
            unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        }
    }

    /// Takes every lock, before a fork.
    pub(super) fn lock(&self, locks: &Locks<'_>) {
        if Futex::is_forking() {
            self.n_nested.fetch_add(1, Ordering::Relaxed);
            return;
        }
        stdio::lock();
        locks.lock();
    }

    /// Releases every lock, in the parent; nothing if the fork is part of another one, which still holds them.
    ///
    /// # Safety
    /// - This thread called [`Forks::lock`] for the same fork.
    pub(super) unsafe fn unlock_in_parent(&self, locks: &Locks<'_>) {
        if !self.leave_nested() {
            // SAFETY: this thread took the locks in `lock`, and no fork within this one is under way.
            unsafe { locks.unlock() };
            stdio::unlock();
        }
    }

    /// Releases every lock, in the child; nothing if the fork is part of another one, which still holds them.
    ///
    /// # Safety
    /// - This thread is the copy of the one that called [`Forks::lock`] for the same fork.
    pub(super) unsafe fn unlock_in_child(&self, locks: &Locks<'_>) {
        if !self.leave_nested() {
            // SAFETY: this thread is the copy of the one that took the locks in `lock`, and no fork within this one is under way.
            unsafe { locks.unlock() };
            stdio::reset();
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
