//! This thread's heap, for the slow paths: created when first needed, or the fallback heap.
#![allow(unsafe_code)]
//!
//! ```text
//!  slow path ─▶ own heap ──────────────────────────────▶ used as it is
//!            └▶ none yet ─▶ start the allocator ─▶ create ─▶ own heap
//!                                                   │ the thread's heap is gone, or it cannot have one
//!                                                   └▶ fallback heap, behind its lock
//! ```
//!
//! A thread whose heap has ended (other destructors may still run) shares the fallback heap with threads that never got one. A signal handler
//! may interrupt a thread that is starting: its allocations fail, and the blocks that it frees are kept until a thread has a heap (`freed_early`).
//!
//! # Safety
//! Records of heaps are never unmapped, so a reference to one stays valid. The thread's pointer (`thread::current`) is set to the heap that was
//! created for the thread, and cleared before that heap ends.

use crate::api::process::{self, PROCESS};
use crate::thread::gated::GatedHeap;
use crate::thread::heap::own::Own;
use crate::thread::life::succession::Which;
use crate::thread::{current, recorded};
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_os::System;

/// Calls `f` with this thread's heap, created if necessary, or with the fallback heap. The heap is alive and this thread's while `f` runs. `None`
/// when the allocator cannot start, or this thread is starting.
pub(super) fn with_heap<R>(f: impl FnOnce(Own<'_, System>) -> R) -> Option<R> {
    if let Some(own) = recorded::own() {
        return Some(f(own));
    }
    if !process::start() {
        return None;
    }
    match created() {
        Some(own) => {
            PROCESS.freed_early.free_some(own);
            Some(f(own))
        }
        None => Some(f(fallback()?.enter().own())),
    }
}

/// Flushes this thread's caches, ends spare heaps, and gives all dirty memory back to the operating system, and that of blocks that wait for other threads in those
/// inboxes that `which` says; if it says all, also the OS pages inside spans of this thread, and of no thread, in which no block is out. Returns the bytes
/// given back.
pub(super) fn purge(which: Which) -> usize {
    let (shared, threads) = (&PROCESS.shared, &PROCESS.threads);
    let before = shared.pages.purged_bytes();
    let flushed = with_heap(|own| {
        // Another thread may have kept them, which can have no heap.
        PROCESS.freed_early.free_all(own);
        which.empty(own);
    });
    if flushed.is_none() {
        return 0;
    }
    // Not with the fallback heap's gate held: a fork takes the registry's lock first.
    threads.purge(shared, which);
    (shared.pages.purged_bytes() - before) as usize
}

/// The heap of threads that cannot have their own, created when first needed; `None` when memory runs out.
fn fallback() -> Option<&'static GatedHeap<System>> {
    loop {
        // SAFETY: the pointer is null or that of a heap's record, which is never unmapped.
        if let Some(fallback) = unsafe { PROCESS.fallback.load(Ordering::Acquire).as_ref() } {
            return Some(fallback);
        }
        let before = current::begin_start();
        // SAFETY: `PROCESS.shared` is a static, and all heaps of `PROCESS.threads` use it.
        let created = unsafe { PROCESS.threads.create_fallback(&PROCESS.shared) };
        current::return_to(before);
        let created = created?;
        let pointer = ptr::from_ref(created).cast_mut();
        if PROCESS.fallback.compare_exchange(ptr::null_mut(), pointer, Ordering::Release, Ordering::Relaxed).is_err() {
            // Another thread has made it meanwhile.
            // SAFETY: the heap was created above, and no other thread has seen it.
            unsafe { PROCESS.threads.end_fallback(created) };
        }
    }
}

/// A heap for this thread, which has none; `None` if it had one, or cannot have one.
fn created() -> Option<Own<'static, System>> {
    if current::is_gone() || !PROCESS.exit_hook.is_set() {
        return None;
    }
    if let Some(own) = current::get().own() {
        // Starting the allocator has allocated, which made this thread's heap.
        return Some(own);
    }
    let before = current::begin_start();
    if before.has_heap() {
        // A signal handler ran just before `begin_start`, and got this thread its heap. (The value for the exit hook does not tell: it may be of a copy of the
        // library in another namespace of the loader.)
        current::return_to(before);
        return recorded::own();
    }
    // SAFETY: `PROCESS.shared` is a static, and all heaps of `PROCESS.threads` use it.
    let taken = unsafe { PROCESS.threads.take_spare() };
    // SAFETY: as above.
    let Some(own) = taken.or_else(|| unsafe { PROCESS.threads.create(&PROCESS.shared) }) else {
        current::return_to(before);
        return None;
    };
    // First the pointer, then the exit hook: setting the hook may allocate, from this very heap.
    // SAFETY: the heap was just created for this thread.
    unsafe { current::set(ptr::from_ref(own.heap()).cast()) };
    if !process::set_exit_value(own.heap()) {
        current::leave();
        // SAFETY: the heap was created above as this thread's, and `leave` took the thread's pointer to it.
        unsafe { PROCESS.threads.end(own) };
        return None;
    }
    process::note_thread(own.heap());
    PROCESS.background.thread_created(&PROCESS.shared);
    PROCESS.recordings.begin(own, PROCESS.shared.settings().record_path());
    Some(own)
}

#[cfg(test)]
mod tests;
