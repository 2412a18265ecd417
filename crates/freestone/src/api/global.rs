//! The process's one allocator: how it starts, and how threads get and lose their heaps.
#![allow(unsafe_code)]
//!
//! ```text
//!  first slow path of a thread ─▶ start (once) ─▶ birth ─▶ thread heap ─▶ … ─▶ thread exit ─▶ death
//!                                    │ no memory                              │
//!                                    ▼                                        ▼
//!                                   null                         fallback heap (one, behind a lock)
//! ```
//!
//! Any entry point may be the first call, on any thread, before `main`, after `exit`, in a TLS destructor. A thread whose heap is gone
//! (other destructors may still run) shares the fallback heap.
//!
//! A signal handler may interrupt a thread that starts (`thread::current`): what it allocates then fails, and what it frees is kept until a
//! thread has its heap.
//!
//! # Safety
//! This is the one mutable static of the crate. C library functions used: `pthread_key_create`, `pthread_getspecific`, and
//! `pthread_setspecific`, which may allocate, and is called when the allocator already works.

use crate::api::background::BackgroundThread;
use crate::api::fork::{self, Forks};
use crate::api::pressure::Pressure;
use crate::api::report::ReportPath;
use crate::api::{options, report};
use crate::shared::Shared;
use crate::thread::gated::GatedHeap;
use crate::thread::heap::Own;
use crate::thread::life::Threads;
use crate::thread::{current, upkeep};
use core::ffi::c_void;
use core::ptr;
use freestone_base::inbox::{Inbox, Node};
use freestone_base::once::Once;
use freestone_base::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use freestone_os::{Futex, Linux};

/// Everything there is one of.
pub struct Global {
    shared: Shared<Linux>,
    threads: Threads<Linux>,
    started: Once<Futex>,
    hooked: AtomicBool,
    fallback: AtomicPtr<GatedHeap<Linux>>,
    /// Blocks freed by signal handlers in threads that were starting.
    freed_early: Inbox,
    key: AtomicU32,
    report: ReportPath,
    background: BackgroundThread,
    pressure: Pressure,
    forks: Forks,
}

static GLOBAL: Global = Global {
    shared: Shared::new(Linux),
    threads: Threads::new(),
    started: Once::new(),
    hooked: AtomicBool::new(false),
    fallback: AtomicPtr::new(ptr::null_mut()),
    freed_early: Inbox::new(),
    key: AtomicU32::new(NO_KEY),
    report: ReportPath::nowhere(),
    background: BackgroundThread::none(),
    pressure: Pressure::nobody(),
    forks: Forks::none(),
};

/// No thread-exit hook could be had.
const NO_KEY: u32 = u32::MAX;

/// The heap goes only when its destructor has come round this often, so that the destructors of others come before it.
const EXIT_ROUNDS: u32 = 2;

/// What all heaps share.
#[must_use]
pub(crate) fn shared() -> &'static Shared<Linux> {
    &GLOBAL.shared
}

/// All thread heaps.
#[must_use]
pub(crate) fn threads() -> &'static Threads<Linux> {
    &GLOBAL.threads
}

/// The allocator's own thread.
#[must_use]
pub(crate) fn background() -> &'static BackgroundThread {
    &GLOBAL.background
}

/// Whom to tell when memory is short.
pub(super) fn pressure() -> &'static Pressure {
    &GLOBAL.pressure
}

/// What the fork handlers need to know.
pub(super) fn forks() -> &'static Forks {
    &GLOBAL.forks
}

/// Where the report goes.
pub(super) fn report_path() -> &'static ReportPath {
    &GLOBAL.report
}

/// Starts the allocator unless it is; `false` if there is no memory to, or this thread is in the middle of it.
pub fn start() -> bool {
    if current::is_starting() {
        return false;
    }
    if !GLOBAL.started.is_done() {
        let before = current::begin_start();
        let is_started = GLOBAL.started.call(try_start);
        // SAFETY: the pointer is what this thread had.
        unsafe { current::set(before) };
        if !is_started {
            return false;
        }
    }
    // These may allocate, which has to find the allocator started.
    if !GLOBAL.hooked.load(Ordering::Relaxed) && !GLOBAL.hooked.swap(true, Ordering::Relaxed) {
        fork::hook();
        report::at_start();
    }
    true
}

fn try_start() -> bool {
    if GLOBAL.shared.pages.open().is_none() {
        return false;
    }
    let mut key = 0;
    // SAFETY: creates a key; does not allocate.
    if unsafe { libc::pthread_key_create(&mut key, Some(on_thread_exit)) } == 0 {
        GLOBAL.key.store(key, Ordering::Relaxed);
    }
    options::apply_all(GLOBAL.shared.settings());
    true
}

/// Calls `f` with this thread's heap, born if need be, or with the fallback heap; `None` when the allocator cannot start, or this thread
/// is starting.
pub(crate) fn with_heap<R>(f: impl FnOnce(Own<'_, Linux>) -> R) -> Option<R> {
    if let Some(own) = current::get().own() {
        return Some(f(own));
    }
    if !start() {
        return None;
    }
    match born() {
        Some(own) => {
            free_early(own);
            Some(f(own))
        }
        None => Some(f(fallback()?.enter().own())),
    }
}

/// Takes over a block that was freed where [`with_heap`] had none to give.
#[cold]
pub(super) fn keep_freed(node: *mut Node) {
    if GLOBAL.shared.pages.view().page_of(node.addr()).is_some() {
        // SAFETY: every block has room for a link, and this one is nobody's any more.
        let pushed = unsafe { GLOBAL.freed_early.push(node, node) };
        debug_assert!(pushed, "nobody closes that list");
    }
}

/// Frees what was kept by [`keep_freed`].
fn free_early(own: Own<'_, Linux>) {
    let mut block = GLOBAL.freed_early.take();
    while !block.is_null() {
        // SAFETY: blocks in the list were freed by the program, and each was put in once.
        unsafe {
            let next = (*block).next;
            own.free(block.cast());
            block = next;
        }
    }
}

/// The heap of threads that cannot have one, born at first need; `None` when memory runs out.
fn fallback() -> Option<&'static GatedHeap<Linux>> {
    loop {
        // SAFETY: records of heaps are never unmapped.
        if let Some(fallback) = unsafe { GLOBAL.fallback.load(Ordering::Acquire).as_ref() } {
            return Some(fallback);
        }
        let before = current::begin_start();
        // SAFETY: what heaps share is a static.
        let born = unsafe { GLOBAL.threads.birth_of_fallback(&GLOBAL.shared) };
        // SAFETY: the pointer is what this thread had.
        unsafe { current::set(before) };
        let born = born?;
        let pointer = ptr::from_ref(born).cast_mut();
        if GLOBAL.fallback.compare_exchange(ptr::null_mut(), pointer, Ordering::Release, Ordering::Relaxed).is_err() {
            // Another thread was first.
            // SAFETY: born above, and seen by nobody.
            unsafe { GLOBAL.threads.death_of_fallback(born) };
        }
    }
}

/// A heap for this thread, which has none; `None` if it had one, or cannot have one.
fn born() -> Option<Own<'static, Linux>> {
    let key = GLOBAL.key.load(Ordering::Relaxed);
    if current::is_gone() || key == NO_KEY {
        return None;
    }
    if let Some(own) = current::get().own() {
        // Starting allocated, and this thread got its heap on the way.
        return Some(own);
    }
    let before = current::begin_start();
    // SAFETY: the key exists as long as the process; its value is null or what is put there below.
    let heap = unsafe { libc::pthread_getspecific(key) };
    if !heap.is_null() {
        // A signal handler came just before the mark, and this thread got its heap from that.
        // SAFETY: the key's value is this thread's heap, which is alive: the hook below takes it away before the heap ends.
        unsafe { current::set(heap.cast()) };
        return current::get().own();
    }
    // SAFETY: what heaps share is a static.
    let Some(own) = (unsafe { GLOBAL.threads.birth(&GLOBAL.shared) }) else {
        // SAFETY: the pointer is what this thread had.
        unsafe { current::set(before) };
        return None;
    };
    // First the pointer, then the hook: setting the hook may allocate, from this very heap.
    // SAFETY: the heap was just born for this thread.
    unsafe { current::set(own.heap()) };
    // SAFETY: the key exists as long as the process.
    if unsafe { libc::pthread_setspecific(key, ptr::from_ref(own.heap()).cast()) } != 0 {
        current::leave();
        // SAFETY: born above, and this thread does not use it any more.
        unsafe { GLOBAL.threads.death(own) };
        return None;
    }
    GLOBAL.background.thread_born();
    Some(own)
}

/// The hook at a thread's end.
///
/// Which heap that is, the thread's own pointer says, not the hook's value: copies of the library in several link namespaces
/// (`dlmopen`) have a C library each, and these share the threads' slots for values, so one copy's value overwrites the other's.
unsafe extern "C" fn on_thread_exit(_: *mut c_void) {
    let Some(own) = current::get().own() else { return };
    if own.count_exit_round() < EXIT_ROUNDS {
        // SAFETY: as in `born`.
        if unsafe { libc::pthread_setspecific(GLOBAL.key.load(Ordering::Relaxed), ptr::from_ref(own.heap()).cast()) }
            == 0
        {
            return;
        }
    }
    current::leave();
    // SAFETY: the heap was this thread's, and is not any more.
    unsafe { GLOBAL.threads.death(own) };
    GLOBAL.background.thread_gone();
}

/// Flushes this thread's caches and gives all dirty memory back. Returns the bytes given back.
pub fn purge() -> usize {
    with_heap(|own| {
        upkeep::flush_all(own);
        GLOBAL.shared.pages.purge()
    })
    .unwrap_or(0)
}
