//! How far a thread of a replay is, for the threads that wait for it.
//!
//! # Safety
//! The kernel reads the number that a waiter passes, which is mapped as long as the process lives.
#![allow(unsafe_code)]

use super::mapped::FromZeros;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a waiter looks before it sleeps.
const LOOKS: u32 = 200;

/// Longest sleep, for a wake-up that came between the last look and the sleep.
const SLEEP_NS: i64 = 1_000_000;

/// One thread's progress, in a cache line of its own.
#[repr(C, align(64))]
pub(super) struct Progress {
    done: AtomicU32,
    is_over: AtomicU32,
    n_waiting: AtomicU32,
}

// SAFETY: zero is a number.
unsafe impl FromZeros for Progress {}

impl Progress {
    /// Nothing is done.
    pub(super) fn restart(&self) {
        self.done.store(0, Ordering::Relaxed);
        self.is_over.store(0, Ordering::Relaxed);
    }

    /// `done` records are done.
    pub(super) fn publish(&self, done: u32) {
        self.done.store(done, Ordering::Release);
        self.wake(&self.done);
    }

    /// The thread does nothing more.
    pub(super) fn end(&self) {
        self.is_over.store(1, Ordering::Release);
        self.wake(&self.is_over);
    }

    /// Waits until `wanted` records are done.
    pub(super) fn wait_for(&self, wanted: u32) {
        self.wait(&self.done, wanted);
    }

    /// Waits until the thread does nothing more.
    pub(super) fn wait_for_the_end(&self) {
        self.wait(&self.is_over, 1);
    }

    fn wait(&self, number: &AtomicU32, wanted: u32) {
        for _ in 0..LOOKS {
            if number.load(Ordering::Acquire) >= wanted {
                return;
            }
            std::hint::spin_loop();
        }
        self.n_waiting.fetch_add(1, Ordering::SeqCst);
        loop {
            let seen = number.load(Ordering::SeqCst);
            if seen >= wanted {
                break;
            }
            let limit = libc::timespec { tv_sec: 0, tv_nsec: SLEEP_NS };
            // SAFETY: the number is alive, and the time a local variable.
            unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), libc::FUTEX_WAIT, seen, &raw const limit) };
        }
        self.n_waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self, number: &AtomicU32) {
        if self.n_waiting.load(Ordering::Relaxed) != 0 {
            let nothing = ptr::null::<libc::timespec>();
            // SAFETY: the number is alive.
            unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), libc::FUTEX_WAKE, i32::MAX, nothing) };
        }
    }
}
