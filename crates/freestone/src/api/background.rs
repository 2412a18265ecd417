//! The background thread: purges memory that has been free for the decay time while the program makes no calls.
//!
//! ```text
//!          due, on an allocation's slow path                    one thread is left
//!  none ──────────────────────────────────▶ starting ─▶ running ──────────────────▶ ending ── joined ──▶ none
//!    ▲                                                     │
//!    └────────────────── fork, in the child ───────────────┘
//! ```
//!
//! Under `background=auto` it starts when a second thread allocates, and ends before the last thread but one has ended. So a program without
//! threads stays single-threaded, and one that has joined all its threads is single-threaded again, as `unshare`, `setns` and limits on threads
//! require. It sleeps in the kernel until there is dirty memory, or many blocks were handed over to their threads, then checks a few times in a decay time. All signals are blocked in it; it
//! allocates nothing; it is scheduled like the program's first thread, whichever thread started it.
//!
//! It is started only where the C library can hold no lock that starting a thread takes: the C library calls `free` with the lock of its
//! stack cache held, but never `malloc`. So the creation of a heap only notes that the thread is due. The thread whose heap has just ended joins it,
//! in its exit hook, where it holds no lock; joining takes the lock of the stack cache, and waits for what the thread does last.
//!
//! A program that starts and joins one thread after the other would start and join it with each of them: after a few ends in a short time, it is not
//! started again for a while.

use crate::api::{live, profile_control};
use crate::config::{Background, Settings};
use crate::shared::Shared;
use crate::thread::life::Threads;
use crate::thread::life::succession::Which;
use freestone_base::lock::Parking;
use freestone_base::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use freestone_os::thread::{self, Joinable, Main};
use freestone_os::{Errno, Futex, Os, System};

const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDING: u32 = 3;

/// Size of its stack in bytes, beside what the C library takes of it.
const STACK_BYTES: usize = 128 * 1024;

/// It checks for expired memory this many times in a decay time.
const CHECKS_PER_DECAY: u32 = 4;

/// It ends at most this many times in [`PERIOD_MS`], or cannot be started; then it is not started again before the period is over. Starting and joining it
/// takes 0.1 ms. If the program frees memory in the rest of the period and then makes no calls, that memory goes back only with its next calls.
const MAX_ENDS: u32 = 4;

/// See [`MAX_ENDS`].
const PERIOD_MS: u64 = 100;

/// A sleep may seem to end so many milliseconds early: the clock is coarse.
const COARSE_MS: u32 = 10;

/// Whether the thread exists, and whether it should.
pub(super) struct BackgroundThread {
    main: Main,
    state: AtomicU32,
    is_due: AtomicBool,
    /// Threads that have a heap.
    n_threads: AtomicU32,
    /// When the period began, and how often the thread has ended in it, or could not be started; written while the state is starting or ending.
    period_ms: AtomicU64,
    /// See `period_ms`.
    n_ends: AtomicU32,
    thread: Joinable,
}

impl BackgroundThread {
    /// No thread yet. `main`, which it will start in, must call [`BackgroundThread::run`].
    pub(super) const fn new(main: Main) -> Self {
        Self {
            main,
            state: AtomicU32::new(NONE),
            is_due: AtomicBool::new(false),
            n_threads: AtomicU32::new(0),
            period_ms: AtomicU64::new(0),
            n_ends: AtomicU32::new(0),
            thread: Joinable::new(),
        }
    }

    /// Notes that a thread got its heap.
    pub(super) fn thread_created(&self, shared: &Shared<System>) {
        self.n_threads.fetch_add(1, Ordering::Relaxed);
        self.set_due_if_wanted(shared);
    }

    /// Notes that the calling thread's heap is gone. If too few are left, the background thread has ended when this returns.
    pub(super) fn thread_gone(&self, shared: &Shared<System>) {
        self.n_threads.fetch_sub(1, Ordering::Relaxed);
        if !self.is_wanted(shared) {
            self.end(shared);
        }
    }

    /// In a forked child only the calling thread exists, with its heap if it `has_heap`.
    pub(super) fn forked(&self, shared: &Shared<System>, has_heap: bool) {
        self.thread.forget();
        self.state.store(NONE, Ordering::Relaxed);
        self.n_ends.store(0, Ordering::Relaxed);
        self.n_threads.store(u32::from(has_heap), Ordering::Relaxed);
        self.set_due_if_wanted(shared);
    }

    /// Starts, ends or wakes the thread as the options now say.
    pub(super) fn option_changed(&self, shared: &Shared<System>) {
        if self.is_wanted(shared) {
            self.set_due_if_wanted(shared);
            shared.pages.wake();
        } else {
            self.end(shared);
        }
    }

    /// Whether the thread should exist, given how many threads have a heap now.
    ///
    /// Several threads write `n_threads`, `state` or an option, and then read the other two here or in `set_due_if_wanted`. The fence makes sure
    /// that of two of them at least one sees what the other wrote, and starts or ends the thread.
    fn is_wanted(&self, shared: &Shared<System>) -> bool {
        fence(Ordering::SeqCst);
        let n_threads = self.n_threads.load(Ordering::Relaxed);
        let settings = shared.settings();
        let samples =
            settings.report_ms().is_some() || live_ms(settings).is_some() || profile_control::needs_thread(settings);
        match settings.background() {
            Background::Auto => n_threads > 1 || (n_threads > 0 && samples),
            Background::On => n_threads > 0,
            Background::Off => false,
        }
    }

    /// Notes that the thread is due, if it should exist and does not.
    fn set_due_if_wanted(&self, shared: &Shared<System>) {
        if self.is_wanted(shared) && self.state.load(Ordering::Relaxed) == NONE {
            self.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Starts the thread if it is due. To be called where an allocation has just been served on its slow path, and the thread holds no lock.
    #[inline]
    pub(super) fn start_if_due(&self, shared: &Shared<System>) {
        if self.is_due.load(Ordering::Relaxed) {
            self.start(shared);
        }
    }

    #[cold]
    fn start(&self, shared: &Shared<System>) {
        if self.has_ended_too_often(shared) || Futex::is_forking() {
            // It stays due.
            return;
        }
        if !self.is_due.swap(false, Ordering::Relaxed)
            || self.state.compare_exchange(NONE, STARTING, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        if let Err(errno) = self.thread.spawn(self.main, STACK_BYTES) {
            // Until there is a thread, memory goes back only when the program makes calls.
            if errno == Errno::AGAIN {
                // There are too many threads now, or too little memory. It is tried again as often as a thread is started again that has ended.
                self.note_end(shared);
                self.is_due.store(true, Ordering::Relaxed);
            }
            self.state.store(NONE, Ordering::Release);
            return;
        }
        self.state.store(RUNNING, Ordering::Release);
        // A thread that exited meanwhile did not end this one, which was not running yet.
        if !self.is_wanted(shared) {
            self.end(shared);
        }
    }

    /// Ends the thread, if it runs, and waits until it has ended. Not within a fork, whose locks it may wait for.
    #[cold]
    fn end(&self, shared: &Shared<System>) {
        if Futex::is_forking()
            || self.state.compare_exchange(RUNNING, ENDING, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return;
        }
        shared.pages.wake();
        self.thread.join();
        self.note_end(shared);
        self.state.store(NONE, Ordering::Release);
        // Threads may have got a heap meanwhile.
        self.set_due_if_wanted(shared);
    }

    fn note_end(&self, shared: &Shared<System>) {
        let (now_ms, n_ends) = (shared.os().now_ms(), self.n_ends.load(Ordering::Relaxed));
        if now_ms.saturating_sub(self.period_ms.load(Ordering::Relaxed)) < PERIOD_MS {
            self.n_ends.store(n_ends + 1, Ordering::Relaxed);
        } else {
            self.period_ms.store(now_ms, Ordering::Relaxed);
            self.n_ends.store(1, Ordering::Relaxed);
        }
    }

    /// Whether it has ended so often in this period that it is not started again before the period is over.
    fn has_ended_too_often(&self, shared: &Shared<System>) -> bool {
        self.n_ends.load(Ordering::Relaxed) >= MAX_ENDS
            && shared.os().now_ms().saturating_sub(self.period_ms.load(Ordering::Relaxed)) < PERIOD_MS
    }

    /// The thread's work, until its state is ending. Calls `sample` at the interval of the option `report_ms`, if it is set, and `update` in each
    /// round.
    pub(super) fn run(&self, shared: &Shared<System>, threads: &Threads<System>, sample: impl Fn(), update: impl Fn()) {
        thread::set_name(c"freestone");
        thread::schedule_like_the_first();
        let (pages, settings) = (&shared.pages, shared.settings());
        let (mut sampled_ms, mut last_seen, mut awake_since_ms) = (0, None, 0);
        loop {
            let seen = pages.wakes();
            // After reading `seen`: the thread that ends this one sets the state first, and wakes it then.
            if self.state.load(Ordering::Relaxed) == ENDING {
                return;
            }
            let now_ms = shared.os().now_ms();
            if last_seen.replace(seen) != Some(seen) {
                awake_since_ms = now_ms;
            }
            threads.end_spare(shared, Which::Expired);
            let is_ending = || self.state.load(Ordering::Relaxed) == ENDING;
            let wait = threads.purge_inboxes(shared, Which::Expired, &is_ending);
            shared.release_in_spans();
            let may_expire = pages.purge_due_now() || threads.n_spare() > 0 || wait;
            // Who has woken it may do so again soon: so it stays awake for a decay time.
            let is_due = |decay_ms: &u32| may_expire || now_ms.saturating_sub(awake_since_ms) < u64::from(*decay_ms);
            let check_ms = settings.decay_ms().filter(is_due).map(|decay_ms| (decay_ms / CHECKS_PER_DECAY).max(1));
            let mut sample_in_ms = settings.report_ms().map(|ms| ms_to_sample(ms, sampled_ms, now_ms));
            if sample_in_ms == Some(0) {
                (sampled_ms, sample_in_ms) = (now_ms, settings.report_ms());
                sample();
            }
            update();
            let rounds = [check_ms, sample_in_ms, live_ms(settings), profile_control::round_ms(settings)];
            let step_ms = rounds.into_iter().flatten().min();
            pages.sleep(seen, step_ms, || threads.has_spare());
        }
    }
}

/// Milliseconds at `now_ms` until the sample after that of `sampled_ms`, of samples every `ms`; 0: it is time for it.
fn ms_to_sample(ms: u32, sampled_ms: u64, now_ms: u64) -> u32 {
    let left_ms = (sampled_ms + u64::from(ms)).saturating_sub(now_ms).min(u64::from(ms)) as u32;
    if left_ms <= COARSE_MS.min(ms / 4) { 0 } else { left_ms }
}

/// Milliseconds between two states of the page of statistics, if there is one.
fn live_ms(settings: &Settings) -> Option<u32> {
    (settings.live_path().is_set() && !settings.sandbox()).then_some(live::INTERVAL_MS)
}

#[cfg(test)]
mod tests;
