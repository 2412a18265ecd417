//! The allocator's own thread: gives back what is too old when the program does nothing.
#![allow(unsafe_code)]
//!
//! ```text
//!  none ── due, on an allocation's slow path ──▶ running ── no thread has a heap any more ──▶ none
//!    ▲                                              │
//!    └──────────────── fork, in the child ──────────┘
//! ```
//!
//! Under `background=auto` it comes with the second thread that allocates: a program without threads stays one. It sleeps in the kernel
//! until there is dirty memory, then looks a few times in a decay time. All signals are blocked in it; it allocates nothing; `exit` ends
//! it with the process, and it does not keep a process alive whose own threads are gone.
//!
//! It is started only where the C library can hold no lock that starting a thread takes: `free` is called by the C library with the lock
//! of its stack cache held, `malloc` is not. So births only say that it is due.
//!
//! # Safety
//! `pthread_*` functions get attributes and sets that were initialised here.

use crate::api::{global, report};
use crate::config::Background;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering};
use freestone_os::process;

const NONE: u32 = 0;
const RUNNING: u32 = 1;

/// Bytes of its stack: what it does is shallow, but the C library's thread-local memory is taken from here as well.
const STACK_BYTES: usize = 128 * 1024;

/// It looks this many times in a decay time.
const LOOKS: u32 = 4;

/// Whether it is there, or ought to be.
pub struct BackgroundThread {
    state: AtomicU32,
    due: AtomicBool,
    /// Threads that have a heap.
    n_threads: AtomicU32,
}

impl BackgroundThread {
    /// Not there.
    #[must_use]
    pub const fn none() -> Self {
        Self { state: AtomicU32::new(NONE), due: AtomicBool::new(false), n_threads: AtomicU32::new(0) }
    }

    /// Notes that a thread got its heap.
    pub(super) fn thread_born(&self) {
        let n_threads = self.n_threads.fetch_add(1, Ordering::Relaxed) + 1;
        self.judge(n_threads);
    }

    /// Notes that a thread's heap is gone. With the last one the background thread goes.
    pub(super) fn thread_gone(&self) {
        if self.n_threads.fetch_sub(1, Ordering::AcqRel) == 1 && self.state.load(Ordering::Acquire) == RUNNING {
            global::central().pages.wake();
        }
    }

    /// In a forked child only the calling thread is there, and its heap if it has one.
    pub(super) fn forked(&self, has_heap: bool) {
        self.state.store(NONE, Ordering::Relaxed);
        self.n_threads.store(u32::from(has_heap), Ordering::Relaxed);
        self.judge(u32::from(has_heap));
    }

    /// Looks at the options again.
    pub(super) fn option_changed(&self) {
        self.judge(self.n_threads.load(Ordering::Relaxed));
        global::central().pages.wake();
    }

    fn judge(&self, n_threads: u32) {
        let settings = &global::central().pages.settings;
        let wanted = match settings.background() {
            Background::Auto => n_threads > 1 || settings.report_ms().is_some(),
            Background::On => true,
            Background::Off => false,
        };
        if wanted && self.state.load(Ordering::Relaxed) == NONE {
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
        if self.due.swap(false, Ordering::Relaxed)
            && self.state.compare_exchange(NONE, RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            && !spawn()
        {
            // No thread to be had: memory goes back on activity alone, as without.
            self.state.store(NONE, Ordering::Release);
        }
    }

    /// Whether it ought to end.
    fn ends(&self) -> bool {
        let off = global::central().pages.settings.background() == Background::Off;
        off || self.n_threads.load(Ordering::Acquire) == 0
    }
}

/// Starts the thread, detached, with every signal blocked; `errno` is kept.
fn spawn() -> bool {
    let errno = process::errno();
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: each structure is initialised by the first call that gets it; the thread's function is `run`.
    let started = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let mut started = false;
        if libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 {
            libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES);
            let mut thread = MaybeUninit::uninit();
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

/// What the thread does.
extern "C" fn run(_: *mut c_void) -> *mut c_void {
    process::name_thread(c"freestone");
    let (pages, this) = (&global::central().pages, global::background());
    loop {
        let seen = pages.wakes();
        let dirty = pages.tidy_now();
        if this.ends() {
            break;
        }
        let settings = &pages.settings;
        let look_ms = if dirty { settings.decay_ms().map(|decay_ms| (decay_ms / LOOKS).max(1)) } else { None };
        if settings.report_ms().is_some() {
            report::sample();
        }
        pages.sleep(seen, [look_ms, settings.report_ms()].into_iter().flatten().min());
    }
    this.state.store(NONE, Ordering::Release);
    // Threads may have come meanwhile.
    this.judge(this.n_threads.load(Ordering::Acquire));
    ptr::null_mut()
}
