//! The allocator's own thread: gives back what is too old when the program does nothing.
#![allow(unsafe_code)]
//!
//! ```text
//!          due, on an allocation's slow path                    one thread is left
//!  none ──────────────────────────────────▶ starting ─▶ running ──────────────────▶ ending ── joined ──▶ none
//!    ▲                                                     │
//!    └────────────────── fork, in the child ───────────────┘
//! ```
//!
//! Under `background=auto` it comes with the second thread that allocates, and ends before the last but one of them has ended: a program
//! without threads stays one, and one whose threads are all joined is one again (`unshare`, `setns`, limits on threads). It sleeps in the
//! kernel until there is dirty memory, then looks a few times in a decay time. All signals are blocked in it; it allocates nothing; it is
//! scheduled like the program's first thread, whoever started it.
//!
//! It is started only where the C library can hold no lock that starting a thread takes: `free` is called by the C library with the lock
//! of its stack cache held, `malloc` is not. So births only say that it is due. It is joined by the thread whose heap has just gone, in that
//! thread's exit hook, where no lock is held; joining takes the lock of the stack cache, and waits for what the thread does last.
//!
//! A program whose threads come and go one at a time would start and join it with each of them: when it has ended a few times, it rests.
//!
//! # Safety
//! `pthread_*` functions get attributes and sets that were initialised here. `thread` is written by who moved the state from none to
//! starting, and read by who moved it from running to ending.

use crate::api::{global, report};
use crate::config::Background;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use freestone_base::lock::Parking;
use freestone_base::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use freestone_os::{Futex, Os, process, scheduling};

const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDING: u32 = 3;

/// Bytes of its stack: what it does is shallow, but the C library's thread-local memory is taken from here as well.
const STACK_BYTES: usize = 128 * 1024;

/// It looks this many times in a decay time.
const CHECKS_PER_DECAY: u32 = 4;

/// It ends this many times in [`PERIOD_MS`] at most: then it is not started again before the period is over. To start and join it takes
/// 0.1 ms. What a program gets in the rest of the period, and frees without asking for more later, goes back on activity alone.
const ENDS_MOST: u32 = 4;

/// See [`ENDS_MOST`].
const PERIOD_MS: u64 = 100;

/// Whether it is there, or ought to be.
pub struct BackgroundThread {
    state: AtomicU32,
    due: AtomicBool,
    /// Threads that have a heap.
    n_threads: AtomicU32,
    /// When the period began, and how often it has ended in it; written while the state is ending.
    period_ms: AtomicU64,
    /// See `period_ms`.
    n_ends: AtomicU32,
    thread: UnsafeCell<MaybeUninit<libc::pthread_t>>,
}

// SAFETY: `thread` passes from its writer to its reader with `state`, see the module header.
unsafe impl Sync for BackgroundThread {}

impl BackgroundThread {
    /// Not there.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            state: AtomicU32::new(NONE),
            due: AtomicBool::new(false),
            n_threads: AtomicU32::new(0),
            period_ms: AtomicU64::new(0),
            n_ends: AtomicU32::new(0),
            thread: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Notes that a thread got its heap.
    pub(super) fn thread_born(&self) {
        let n_threads = self.n_threads.fetch_add(1, Ordering::SeqCst) + 1;
        self.judge(n_threads);
    }

    /// Notes that the calling thread's heap is gone. If too few are left, the background thread has ended when this returns.
    pub(super) fn thread_gone(&self) {
        let n_threads = self.n_threads.fetch_sub(1, Ordering::SeqCst) - 1;
        if !Self::is_wanted(n_threads) {
            self.end();
        }
    }

    /// In a forked child only the calling thread is there, and its heap if it has one.
    pub(super) fn forked(&self, has_heap: bool) {
        self.state.store(NONE, Ordering::Relaxed);
        self.n_ends.store(0, Ordering::Relaxed);
        self.n_threads.store(u32::from(has_heap), Ordering::Relaxed);
        self.judge(u32::from(has_heap));
    }

    /// Looks at the options again.
    pub(super) fn option_changed(&self) {
        let n_threads = self.n_threads.load(Ordering::SeqCst);
        if Self::is_wanted(n_threads) {
            self.judge(n_threads);
            global::shared().pages.wake();
        } else {
            self.end();
        }
    }

    /// Whether it is wanted while so many threads have a heap.
    fn is_wanted(n_threads: u32) -> bool {
        let settings = global::shared().settings();
        match settings.background() {
            Background::Auto => n_threads > 1 || (n_threads > 0 && settings.report_ms().is_some()),
            Background::On => n_threads > 0,
            Background::Off => false,
        }
    }

    fn judge(&self, n_threads: u32) {
        if self.state.load(Ordering::Relaxed) == NONE && Self::is_wanted(n_threads) {
            self.due.store(true, Ordering::Relaxed);
        }
    }

    /// Starts the thread if it is due. To be called where an allocation has just been served on its slow path, and nothing is held.
    #[inline]
    pub(super) fn start_if_due(&self) {
        if self.due.load(Ordering::Relaxed) {
            self.start();
        }
    }

    #[cold]
    fn start(&self) {
        if self.rests() || Futex::is_forking() {
            // It stays due.
            return;
        }
        if !self.due.swap(false, Ordering::Relaxed)
            || self.state.compare_exchange(NONE, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return;
        }
        // SAFETY: this thread moved the state from none to starting.
        if !unsafe { spawn(&mut *self.thread.get()) } {
            // No thread to be had: memory goes back on activity alone, as without.
            self.state.store(NONE, Ordering::Release);
            return;
        }
        self.state.store(RUNNING, Ordering::SeqCst);
        // A thread that went meanwhile found nobody to end. Of the two, one sees the other's store: hence sequential consistency.
        if !Self::is_wanted(self.n_threads.load(Ordering::SeqCst)) {
            self.end();
        }
    }

    /// Ends the thread, if it runs, and waits until it has ended. Not within a fork, whose locks it may wait for.
    #[cold]
    fn end(&self) {
        if Futex::is_forking()
            || self.state.compare_exchange(RUNNING, ENDING, Ordering::SeqCst, Ordering::Relaxed).is_err()
        {
            return;
        }
        global::shared().pages.wake();
        // SAFETY: this thread moved the state from running to ending.
        unsafe { join((*self.thread.get()).assume_init()) };
        self.note_end();
        self.state.store(NONE, Ordering::SeqCst);
        // Threads may have come meanwhile.
        self.judge(self.n_threads.load(Ordering::SeqCst));
    }

    fn note_end(&self) {
        let (now, n_ends) = (now_ms(), self.n_ends.load(Ordering::Relaxed));
        if now.saturating_sub(self.period_ms.load(Ordering::Relaxed)) < PERIOD_MS {
            self.n_ends.store(n_ends + 1, Ordering::Relaxed);
        } else {
            self.period_ms.store(now, Ordering::Relaxed);
            self.n_ends.store(1, Ordering::Relaxed);
        }
    }

    /// Whether it has ended so often lately that it is not started again for a while.
    fn rests(&self) -> bool {
        self.n_ends.load(Ordering::Relaxed) >= ENDS_MOST
            && now_ms().saturating_sub(self.period_ms.load(Ordering::Relaxed)) < PERIOD_MS
    }

    fn is_ending(&self) -> bool {
        self.state.load(Ordering::Acquire) == ENDING
    }
}

fn now_ms() -> u64 {
    global::shared().os().now_ms()
}

/// Starts the thread, with every signal blocked; `errno` is kept.
fn spawn(thread: &mut MaybeUninit<libc::pthread_t>) -> bool {
    let errno = process::errno();
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: each structure is initialised by the first call that gets it; the thread's function is `run`.
    let started = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let mut started = false;
        if libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES);
            let none = ptr::null_mut();
            started = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, none) == 0;
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        started
    };
    process::set_errno(errno);
    started
}

/// Waits for the thread's end. A thread that is cancelled is not cancelled here.
///
/// # Safety
/// - The thread was started by [`spawn`], and is joined by nobody else.
unsafe fn join(thread: libc::pthread_t) {
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
    /// The same in glibc and musl.
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    let errno = process::errno();
    let mut before = 0;
    // SAFETY: the promise above; the state is put back as it was.
    unsafe {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
        libc::pthread_join(thread, ptr::null_mut());
        pthread_setcancelstate(before, ptr::null_mut());
    }
    process::set_errno(errno);
}

/// What the thread does.
extern "C" fn run(_: *mut c_void) -> *mut c_void {
    process::name_thread(c"freestone");
    scheduling::like_the_first_thread();
    let (pages, this) = (&global::shared().pages, global::background());
    loop {
        let seen = pages.wakes();
        // After reading `seen`: who ends the thread says so first, and wakes it then.
        if this.is_ending() {
            return ptr::null_mut();
        }
        let dirty = pages.purge_due_now();
        let settings = global::shared().settings();
        let look_ms =
            if dirty { settings.decay_ms().map(|decay_ms| (decay_ms / CHECKS_PER_DECAY).max(1)) } else { None };
        if settings.report_ms().is_some() {
            report::sample();
        }
        pages.sleep(seen, [look_ms, settings.report_ms()].into_iter().flatten().min());
    }
}
