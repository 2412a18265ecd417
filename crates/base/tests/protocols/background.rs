//! The start, the sleep and the end of the background thread.
#![allow(unsafe_code)]
//!
//! Threads that start or exit, and the one that starts or ends the background thread, each write one word and then read another's. loom treats a
//! sequentially consistent access as an acquire-release one, but models fences: hence the heap has a fence there.
//!
//! # Safety
//! The handle is a cell of loom's: whether an access is ordered is what loom finds out.

use crate::stated;
use freestone_base::lock::Parking;
use freestone_base::sync::parked::Parked;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering, fence};
use freestone_base::tagged_stack::TaggedStack;
use loom::cell::UnsafeCell;
use loom::sync::{Mutex, MutexGuard};
use std::sync::Arc;

const NONE: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDING: u32 = 3;

/// The heap's `BackgroundThread`, which should exist while two threads have a heap.
struct Background {
    state: AtomicU32,
    due: AtomicBool,
    n_threads: AtomicU32,
    handle: UnsafeCell<u32>,
}

impl Background {
    fn new(state: u32, n_threads: u32) -> Arc<Self> {
        let (state, n_threads) = (AtomicU32::new(state), AtomicU32::new(n_threads));
        Arc::new(Self { state, due: AtomicBool::new(true), n_threads, handle: UnsafeCell::new(7) })
    }

    fn created(&self) {
        self.n_threads.fetch_add(1, stated::BACKGROUND_CREATED.ordering());
        self.judge();
    }

    fn gone(&self) {
        self.n_threads.fetch_sub(1, stated::BACKGROUND_GONE.ordering());
        if !self.is_wanted() {
            self.end();
        }
    }

    fn is_wanted(&self) -> bool {
        fence(stated::BACKGROUND_FENCE.ordering());
        self.n_threads.load(stated::BACKGROUND_COUNT.ordering()) > 1
    }

    fn judge(&self) {
        if self.is_wanted() && self.state.load(stated::BACKGROUND_STATE.ordering()) == NONE {
            self.due.store(true, Ordering::Relaxed);
        }
    }

    /// Starts the thread, or fails to.
    fn start(&self, succeeds: bool) {
        let (taken, refused) = (stated::BACKGROUND_START.ordering(), stated::BACKGROUND_START_REFUSED.ordering());
        if !self.due.swap(false, Ordering::Relaxed)
            || self.state.compare_exchange(NONE, STARTING, taken, refused).is_err()
        {
            return;
        }
        // SAFETY: this thread moved the state from none to starting.
        self.handle.with_mut(|handle| unsafe { *handle = 7 });
        if !succeeds {
            self.state.store(NONE, stated::BACKGROUND_START_FAILED.ordering());
            return;
        }
        self.state.store(RUNNING, stated::BACKGROUND_STARTED.ordering());
        if !self.is_wanted() {
            self.end();
        }
    }

    fn end(&self) {
        let (taken, refused) = (stated::BACKGROUND_END.ordering(), stated::BACKGROUND_END_REFUSED.ordering());
        if self.state.compare_exchange(RUNNING, ENDING, taken, refused).is_err() {
            return;
        }
        // SAFETY: this thread moved the state from running to ending.
        self.handle.with(|handle| unsafe { assert_eq!(*handle, 7) });
        self.state.store(NONE, stated::BACKGROUND_ENDED.ordering());
        self.judge();
    }

    /// Checks the result of two threads' actions: the background thread runs, or is due, exactly if it should exist.
    fn check(&self) {
        let (state, due) = (self.state.load(Ordering::Relaxed), self.due.load(Ordering::Relaxed));
        match self.n_threads.load(Ordering::Relaxed) {
            0 | 1 => assert_eq!(state, NONE, "it runs, and no thread ends it"),
            _ => assert!(state == RUNNING || (state == NONE && due), "no thread starts it: state {state}"),
        }
    }
}

/// Runs two threads at once and checks the result.
fn beside(background: &Arc<Background>, one: fn(&Background), other: fn(&Background)) {
    let theirs = Arc::clone(background);
    let thread = loom::thread::spawn(move || other(&theirs));
    one(background);
    thread.join().unwrap();
}

#[test]
fn a_thread_that_exits_while_the_background_thread_starts_ends_it_or_is_seen() {
    loom::model(|| {
        let background = Background::new(NONE, 2);
        beside(&background, |this| this.start(true), Background::gone);
        background.check();
    });
}

#[test]
fn a_thread_that_is_born_while_the_background_thread_ends_starts_it_again_or_is_seen() {
    loom::model(|| {
        let background = Background::new(RUNNING, 2);
        background.due.store(false, Ordering::Relaxed);
        beside(&background, Background::gone, Background::created);
        background.check();
    });
}

/// Two threads start and end it: each has exclusive access to the handle, and sees what the other wrote. A start may fail.
fn two_start_and_end_it(first_succeeds: fn() -> bool) {
    let background = Background::new(NONE, 1);
    let start_and_end = |this: &Background| {
        this.created();
        this.start(true);
        this.gone();
    };
    if first_succeeds() {
        beside(&background, start_and_end, start_and_end);
    } else {
        beside(
            &background,
            |this| {
                this.created();
                this.start(false);
                this.gone();
            },
            start_and_end,
        );
    }
    background.check();
}

#[test]
fn a_thread_that_ends_the_background_thread_has_its_handle() {
    loom::model(|| two_start_and_end_it(|| true));
}

#[test]
fn a_thread_that_starts_the_background_thread_after_a_failure_has_the_handle() {
    loom::model(|| two_start_and_end_it(|| false));
}

/// What the background thread reads: dirty memory under the page heap's lock, emptied spans and freed runs, which it takes under the lock, the word it sleeps on,
/// and its state.
struct Watched {
    dirty: Mutex<u32>,
    emptied: TaggedStack,
    freed: TaggedStack,
    wakes: AtomicU32,
    asleep: AtomicBool,
    state: AtomicU32,
}

impl Watched {
    fn new() -> Arc<Self> {
        let (wakes, state) = (AtomicU32::new(0), AtomicU32::new(RUNNING));
        let (emptied, freed) = (TaggedStack::new(), TaggedStack::new());
        Arc::new(Self { dirty: Mutex::new(0), emptied, freed, wakes, asleep: AtomicBool::new(false), state })
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, stated::WAKE.ordering());
        Parked::wake_one(&self.wakes);
    }

    fn wake_for_dirty(&self) {
        let (looks, wakes) = (stated::DIRTY_ASLEEP.ordering(), stated::DIRTY_WAKES.ordering());
        if self.asleep.load(looks) && self.asleep.swap(false, wakes) {
            self.wake();
        }
    }

    fn wake_for_work(&self) {
        self.wakes.fetch_add(1, stated::WORK_COUNTED.ordering());
        fence(stated::WORK_FENCE.ordering());
        let (looks, wakes) = (stated::WORK_ASLEEP.ordering(), stated::WORK_WAKES.ordering());
        if self.asleep.load(looks) && self.asleep.swap(false, wakes) {
            Parked::wake_one(&self.wakes);
        }
    }

    /// Takes the lock, and frees what is listed.
    fn look(&self) -> MutexGuard<'_, u32> {
        let mut dirty = self.dirty.lock().unwrap();
        *dirty += u32::from(self.emptied.take() != 0) + u32::from(self.freed.take() != 0);
        dirty
    }

    /// The background thread: it looks until it `ends`, and sleeps while no memory is dirty.
    fn run(&self, ends: impl Fn(&Self, u32) -> bool) {
        loop {
            let seen = self.wakes.load(stated::WAKES_SEEN.ordering());
            let purged = core::mem::replace(&mut *self.look(), 0);
            if ends(self, purged) {
                return;
            }
            self.asleep.store(true, stated::FALLS_ASLEEP.ordering());
            if *self.look() == 0 {
                Parked::wait(&self.wakes, seen);
            }
            self.asleep.store(false, Ordering::Relaxed);
        }
    }
}

/// What `happens` while the background thread falls asleep makes memory dirty: it is given back all the same.
fn the_background_thread_does_not_miss(happens: fn(&Watched)) {
    loom::model(move || {
        let watched = Watched::new();
        let other = Arc::clone(&watched);
        let thread = loom::thread::spawn(move || other.run(|_, purged| purged > 0));
        happens(&watched);
        watched.wake_for_dirty();
        thread.join().unwrap();
    });
}

#[test]
fn the_background_thread_misses_no_dirty_memory() {
    the_background_thread_does_not_miss(|watched| *watched.dirty.lock().unwrap() += 1);
}

/// It is listed without the lock.
#[test]
fn the_background_thread_misses_no_emptied_span() {
    the_background_thread_does_not_miss(|watched| watched.emptied.push(1, |_| {}));
}

/// It is left in a list for the next block, which nobody wants.
#[test]
fn the_background_thread_misses_no_freed_run() {
    the_background_thread_does_not_miss(|watched| watched.freed.push(1, |_| {}));
}

/// Another thread ends the background thread: it sets the state, wakes it and joins it. The state orders nothing else: the wake-up must.
#[test]
fn the_background_thread_does_not_miss_its_end() {
    loom::model(|| {
        let watched = Watched::new();
        let other = Arc::clone(&watched);
        let ends = |this: &Watched, _| this.state.load(stated::BACKGROUND_IS_ENDING.ordering()) == ENDING;
        let thread = loom::thread::spawn(move || other.run(ends));
        let (taken, refused) = (stated::BACKGROUND_END.ordering(), stated::BACKGROUND_END_REFUSED.ordering());
        assert!(watched.state.compare_exchange(RUNNING, ENDING, taken, refused).is_ok());
        watched.wake();
        thread.join().unwrap();
    });
}

/// Another thread leaves work, without a lock: the background thread sees it before it sleeps, or is woken. The number of the work orders nothing.
#[test]
fn the_background_thread_misses_no_work() {
    loom::model(|| {
        let (watched, work) = (Watched::new(), Arc::new(AtomicU32::new(0)));
        let (other, left) = (Arc::clone(&watched), Arc::clone(&work));
        let thread = loom::thread::spawn(move || {
            loop {
                let seen = other.wakes.load(stated::WAKES_SEEN.ordering());
                if left.load(Ordering::Relaxed) > 0 {
                    return;
                }
                other.asleep.store(true, stated::FALLS_ASLEEP.ordering());
                // The kernel's, before it reads the word.
                fence(Ordering::SeqCst);
                Parked::wait(&other.wakes, seen);
                other.asleep.store(false, Ordering::Relaxed);
            }
        });
        work.store(1, Ordering::Relaxed);
        watched.wake_for_work();
        thread.join().unwrap();
    });
}
