#![allow(unsafe_code)]
use super::*;
use crate::config::Harden;
use crate::thread::explicit::ExplicitHeap;
use freestone_base::units::Pages;
use std::boxed::Box;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

/// One thread of a process forks at a time.
static ONE_FORK: Mutex<()> = Mutex::new(());

/// The parts of an allocator, and what its forks need.
struct Parts {
    pressure: Pressure,
    start: Start,
    threads: Threads<System>,
    freed_early: FreedEarly,
    shared: Box<Shared<System>>,
    forks: Forks,
}

impl Parts {
    fn new() -> Self {
        Self {
            pressure: Pressure::new(),
            start: Start::new(),
            threads: Threads::new(),
            freed_early: FreedEarly::new(),
            shared: Box::new(Shared::new(System)),
            forks: Forks::new(),
        }
    }

    fn locks(&self) -> Locks<'_> {
        Locks {
            pressure: &self.pressure,
            start: &self.start,
            threads: &self.threads,
            freed_early: &self.freed_early,
            shared: &self.shared,
        }
    }

    /// Ends a fork of this thread.
    fn unlock(&self, in_child: bool) {
        // SAFETY: this thread took the locks, while it held no guard, or none was taken.
        let forker = unsafe { Forker::new() };
        if in_child {
            self.forks.unlock_in_child(&self.locks(), forker);
        } else {
            self.forks.unlock_in_parent(&self.locks(), forker);
        }
    }

    /// Takes each lock once, as a thread that does not fork.
    fn take_each_lock(&self) {
        // SAFETY: nothing is called.
        unsafe { self.pressure.listen(None, core::ptr::null_mut()) };
        let _ = self.threads.n_alive();
        self.shared.central.inspect(self.shared.pages.layout(), 0, |_, _, _| ());
        self.shared.pages.purge();
        let run = self.shared.pages.allocate(Pages(1), Pages(1), crate::span::Kind::Large);
        assert!(run.is_some());
    }
}

/// What the C library does to the thread that forks, as far as handlers see it. A real fork would take all of the test program with it.
#[test]
#[cfg_attr(miri, ignore = "links by assembler")]
fn locks_are_released_with_the_outermost_fork_and_no_sooner() {
    let _one = ONE_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = Parts::new();
    parts.shared.pages.open().expect("there is memory");
    for n_nested in [0, 1, 3] {
        for in_child in [false, true] {
            parts.forks.lock(&parts.locks());
            (0..n_nested).for_each(|_| parts.forks.lock(&parts.locks()));
            for _ in 0..n_nested {
                assert!(Futex::is_forking());
                parts.unlock(in_child);
            }
            assert!(Futex::is_forking(), "a fork within it ended, and not this one");
            // The thread that forks passes the locks it holds: handlers of others may allocate.
            parts.shared.pages.purge();
            parts.unlock(in_child);
            assert!(!Futex::is_forking());
            thread::scope(|scope| scope.spawn(|| parts.take_each_lock()).join().expect("every lock is free"));
        }
    }
}

/// A signal handler that forks may have interrupted its thread anywhere.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "no thread is marked as inside")]
#[cfg_attr(miri, ignore = "links by assembler")]
fn a_fork_in_a_thread_that_holds_a_lock_takes_none_and_releases_none() {
    let _one = ONE_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = Parts::new();
    parts.shared.pages.open().expect("there is memory");
    // SAFETY: the parts outlive the heap.
    let explicit = unsafe { parts.threads.create_explicit(&parts.shared, Harden::Off) };
    let gate = Gate(explicit.expect("there is memory"));
    for in_child in [false, true] {
        let held = gate.0.enter();
        parts.forks.lock(&parts.locks());
        assert!(!Futex::is_forking());
        parts.unlock(in_child);
        thread::scope(|scope| {
            scope.spawn(|| parts.take_each_lock()).join().expect("no other lock is taken");
            scope.spawn(|| assert!(!gate.is_free(), "the interrupted code holds it still"));
        });
        drop(held);
    }
}

/// In the child no thread would go on with either.
#[test]
#[cfg_attr(miri, ignore = "links by assembler")]
fn a_fork_waits_for_who_starts_the_allocator_and_for_who_frees_kept_blocks() {
    let _one = ONE_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = Parts::new();
    parts.start.lock_for_fork();
    parts.freed_early.lock_for_fork();
    thread::scope(|scope| {
        let forking = scope.spawn(|| {
            parts.forks.lock(&parts.locks());
            parts.unlock(false);
        });
        let waits = || {
            for _ in 0..100 {
                thread::yield_now();
                assert!(!forking.is_finished());
            }
        };
        waits();
        // SAFETY: this thread took the lock.
        parts.start.unlock_after_fork(unsafe { Forker::new() });
        waits();
        // SAFETY: this thread took the lock.
        parts.freed_early.unlock_after_fork(unsafe { Forker::new() });
        forking.join().unwrap();
    });
}

/// The folder of this thread in `/proc`.
fn thread_in_proc() -> PathBuf {
    Path::new("/proc").join(fs::read_link("/proc/thread-self").expect("the kernel says so"))
}

/// Whether a thread sleeps in the kernel.
fn is_asleep(thread: &Path) -> bool {
    // Its number, its name in parentheses, its state.
    let stat = fs::read_to_string(thread.join("stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
}

/// An explicit heap that threads enter by its gate.
struct Gate<'a>(&'a ExplicitHeap<System>);

// SAFETY: the tests only enter the heap, and its gate is a lock.
unsafe impl Sync for Gate<'_> {}

impl Gate<'_> {
    fn pass(&self) {
        drop(self.0.enter());
    }

    fn is_free(&self) -> bool {
        self.0.try_enter().is_some()
    }
}

#[test]
#[cfg_attr(miri, ignore = "links by assembler")]
#[cfg_attr(not(target_os = "linux"), ignore = "asks the kernel which threads sleep")]
fn a_thread_waits_for_a_fork_at_every_lock() {
    type Take = fn(&Parts, &Gate<'_>);
    let takes: [Take; 6] = [
        // SAFETY: nothing is called.
        |parts, _| unsafe { parts.pressure.listen(None, core::ptr::null_mut()) },
        |parts, _| {
            let _ = parts.start.call(|| false);
        },
        |parts, _| {
            let _ = parts.threads.n_alive();
        },
        |_, gate| gate.pass(),
        |parts, _| parts.shared.central.inspect(parts.shared.pages.layout(), 0, |_, _, _| ()),
        |parts, _| {
            let _ = parts.shared.pages.stats();
        },
    ];
    let _one = ONE_FORK.lock().unwrap_or_else(PoisonError::into_inner);
    let parts = Parts::new();
    parts.shared.pages.open().expect("there is memory");
    // SAFETY: the parts outlive the heap.
    let explicit = unsafe { parts.threads.create_explicit(&parts.shared, Harden::Off) };
    let gate = Gate(explicit.expect("there is memory"));
    for take in takes {
        let (is_forking, has_taken) = (AtomicBool::new(true), AtomicBool::new(false));
        let (sender, receiver) = channel();
        parts.forks.lock(&parts.locks());
        thread::scope(|scope| {
            let taker = scope.spawn(|| {
                sender.send(thread_in_proc()).expect("the other thread waits for it");
                take(&parts, &gate);
                assert!(!is_forking.load(Ordering::Relaxed), "a lock was free during a fork");
                has_taken.store(true, Ordering::Relaxed);
            });
            let waiter = receiver.recv().expect("the thread says which it is");
            // It sleeps until the lock is free, or has found it free and failed.
            while !taker.is_finished() && !is_asleep(&waiter) {
                thread::yield_now();
            }
            is_forking.store(false, Ordering::Relaxed);
            // SAFETY: this thread took the locks, and holds no guard.
            parts.forks.unlock_in_parent(&parts.locks(), unsafe { Forker::new() });
        });
        assert!(has_taken.load(Ordering::Relaxed));
    }
}
