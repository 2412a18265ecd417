//! Staying whole across `fork`.
#![allow(unsafe_code)]
//!
//! Before: every lock is taken, in order of rank, so that no thread is inside anything. After, in the parent: all are let go. In the
//! child: the same, and the heaps of the threads that did not come along are orphaned (`thread::life`).
//!
//! The handlers are registered as early as the allocator starts: they run last before a fork and first after it, so that handlers of
//! others may allocate. Several threads may fork at once: the locks queue them.
//!
//! # Safety
//! The handlers run in the thread that forks, which the C library guarantees.

use crate::api::global;
use crate::thread::current;
use core::ptr;

/// Registers the handlers. If that fails, forking while other threads allocate is not safe; there is nobody to tell.
pub(super) fn hook() {
    // SAFETY: the handlers below are functions without state.
    unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
}

unsafe extern "C" fn before() {
    global::pressure().lock_for_fork();
    global::threads().lock_for_fork();
    global::central().lock_for_fork();
}

unsafe extern "C" fn after_in_parent() {
    // SAFETY: this thread took them in `before`.
    unsafe {
        global::central().unlock_after_fork();
        global::threads().unlock_after_fork();
        global::pressure().unlock_after_fork();
    }
}

unsafe extern "C" fn after_in_child() {
    // SAFETY: this thread is the copy of the one that took them, and the only one.
    unsafe {
        global::central().unlock_after_fork();
        global::threads().unlock_after_fork();
        global::pressure().unlock_after_fork();
        global::central().pages.adopt_purging_in_child();
        global::threads().orphan_others(ptr::from_ref(current::get()));
    }
    global::background().forked(!current::get().is_nobody());
}
