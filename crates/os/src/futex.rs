//! Waiting for a lock word in the kernel.

use crate::process;
use core::sync::atomic::{AtomicUsize, Ordering};
use freestone_base::lock::Parking;
use freestone_base::sync::AtomicU32;
use rustix::thread::futex;
use rustix::thread::futex::Timespec;

/// Parks waiters on the lock's own word.
#[derive(Debug)]
pub struct Futex;

/// [`Parking::this_thread`] of the thread that forks just now; 0: none does.
static FORKING: AtomicUsize = AtomicUsize::new(0);

impl Futex {
    /// From now on the calling thread forks: it enters the locks that it took for that.
    pub fn begin_fork() {
        FORKING.store(Self::this_thread(), Ordering::Relaxed);
    }

    /// The fork is over, in the parent or the child.
    pub fn end_fork() {
        FORKING.store(0, Ordering::Relaxed);
    }

    /// Returns when `word` may have changed from `expected`, or after `ms` milliseconds if that is given; may return early.
    pub fn wait_for(word: &AtomicU32, expected: u32, ms: Option<u32>) {
        let timeout = ms.map(|ms| Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 });
        // As below: the caller looks again.
        let _ = futex::wait(word, futex::Flags::PRIVATE, expected, timeout.as_ref());
    }

    /// Wakes everybody who waits for `word` to change.
    pub fn wake_all(word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

impl Parking for Futex {
    fn wait(word: &AtomicU32, expected: u32) {
        // Any outcome (woken, interrupted, changed before we slept) sends the caller back to look at the word.
        let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
    }

    fn wake_one(word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }

    fn this_thread() -> usize {
        // Threads of a model under schedules are one thread of the operating system.
        if cfg!(shuttle) { 0 } else { process::errno_address() }
    }

    fn is_forking() -> bool {
        // Only this thread itself writes its own number, and takes it away.
        let forking = FORKING.load(Ordering::Relaxed);
        forking != 0 && forking == Self::this_thread()
    }
}

#[cfg(test)]
mod tests;
