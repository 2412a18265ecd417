//! Staying whole across `fork`.
#![allow(unsafe_code)]
//!
//! Before: the C library's list of streams is locked (`stdio`), then every lock of the allocator, in order of rank, so that no thread is
//! inside anything. After, in the parent: all are let go. In the child: the same, and what only threads that did not come along could end
//! is ended for them.
//!
//! ```text
//!  handlers of others, the last registered first ─▶ before ─▶ fork ─▶ after ─▶ handlers of others, the first registered first
//! ```
//!
//! **Registered first.** Handlers of others may allocate, so ours run last before a fork and first after it: a constructor with the first
//! priority registers them, and the shared library is initialised before all others (`-z initfirst`). A handler that was registered
//! earlier all the same (by a shared library's constructor, in a program linked with the archive or with the crate) runs while the locks
//! are held, and may allocate too: the thread that forks enters what it holds ([`Futex::begin_fork`]).
//!
//! Several threads may fork at once: the locks queue them. A fork within a fork handler is part of the outer one.
//!
//! # Safety
//! The handlers run in the thread that forks, which the C library guarantees.

use crate::api::{global, pin, stdio};
use crate::thread::current;
use freestone_base::lock::Parking;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_os::Futex;

/// What the handlers need to know.
pub struct Forks {
    hooked: AtomicBool,
    /// Forks under way inside the one that holds the locks; touched by its thread only.
    nested: AtomicU32,
}

impl Forks {
    /// No handlers yet.
    #[must_use]
    pub const fn none() -> Self {
        Self { hooked: AtomicBool::new(false), nested: AtomicU32::new(0) }
    }
}

/// Among the first constructors of the object that has the allocator in it.
#[used]
#[unsafe(link_section = ".init_array.00000")]
static AT_LOAD: extern "C" fn() = at_load;

/// Allocates nothing and reads no environment: the C library may not be initialised.
extern "C" fn at_load() {
    hook();
    pin::pin();
}

/// Registers the handlers, unless they are. If that fails, forking while other threads allocate is not safe; there is nobody to tell.
pub(super) fn hook() {
    // A linker takes an object out of an archive for a symbol that is asked for, and with it this constructor.
    core::hint::black_box(&AT_LOAD);
    if !global::forks().hooked.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers below are functions without state.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    }
}

unsafe extern "C" fn before() {
    if Futex::is_forking() {
        global::forks().nested.fetch_add(1, Ordering::Relaxed);
        return;
    }
    stdio::lock();
    global::pressure().lock_for_fork();
    // That lock queues those who fork at once; from here on this thread may enter what it holds.
    Futex::begin_fork();
    global::threads().lock_for_fork();
    global::shared().lock_for_fork();
}

/// Whether this fork was inside another of the same thread, which is under way still.
fn was_nested() -> bool {
    let nested = &global::forks().nested;
    let is_nested = nested.load(Ordering::Relaxed) > 0;
    if is_nested {
        nested.fetch_sub(1, Ordering::Relaxed);
    }
    is_nested
}

/// Lets every lock of the allocator go.
///
/// # Safety
/// - This thread, or the one it is the copy of, took them in [`before`].
unsafe fn unlock() {
    // SAFETY: the promise above is the one each of them asks for.
    unsafe {
        global::shared().unlock_after_fork();
        global::threads().unlock_after_fork();
        Futex::end_fork();
        global::pressure().unlock_after_fork();
    }
}

unsafe extern "C" fn after_in_parent() {
    if !was_nested() {
        // SAFETY: this thread took them in `before`, and no fork is under way inside this one.
        unsafe { unlock() };
        stdio::unlock();
    }
}

unsafe extern "C" fn after_in_child() {
    if !was_nested() {
        // SAFETY: this thread is the copy of the one that took them, and the only one.
        unsafe { unlock() };
        stdio::reset();
    }
    // From here on no lock is waited for: this thread holds them all, or nobody does.
    global::shared().pages.adopt_purging_in_child();
    // SAFETY: the process has one thread, and this is its heap.
    unsafe { global::threads().orphan_others(current::get().own()) };
    global::background().forked(current::get().own().is_some());
    global::pressure().forked();
}
