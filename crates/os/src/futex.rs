//! Waiting for a lock word in the kernel.

use core::sync::atomic::{AtomicUsize, Ordering};
use freestone_base::lock::Parking;
use freestone_base::sync::AtomicU32;

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
        kernel::wait(word, expected, ms);
    }
}

impl Parking for Futex {
    fn wait(word: &AtomicU32, expected: u32) {
        kernel::wait(word, expected, None);
    }

    fn wake_one(word: &AtomicU32) {
        kernel::wake(word, 1);
    }

    fn wake_all(word: &AtomicU32) {
        kernel::wake(word, i32::MAX as u32);
    }

    fn this_thread() -> usize {
        kernel::this_thread()
    }

    fn is_forking() -> bool {
        // Only this thread itself writes its own number, and takes it away.
        let forking = FORKING.load(Ordering::Relaxed);
        forking != 0 && forking == Self::this_thread()
    }
}

#[cfg(not(shuttle))]
mod kernel {
    use super::AtomicU32;
    use crate::process;
    use rustix::thread::futex::{self, Flags, Timespec};

    pub(super) fn wait(word: &AtomicU32, expected: u32, ms: Option<u32>) {
        let timeout = ms.map(|ms| Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 });
        // Any outcome (woken, interrupted, changed before we slept, too late) sends the caller back to look at the word.
        let _ = futex::wait(word, Flags::PRIVATE, expected, timeout.as_ref());
    }

    pub(super) fn wake(word: &AtomicU32, most: u32) {
        let _ = futex::wake(word, Flags::PRIVATE, most);
    }

    pub(super) fn this_thread() -> usize {
        process::errno_address()
    }
}

/// The kernel of the model under schedules, whose threads are one thread of the operating system.
#[cfg(shuttle)]
mod kernel {
    use super::AtomicU32;
    use freestone_base::sync::scheduled;

    pub(super) fn wait(word: &AtomicU32, expected: u32, ms: Option<u32>) {
        match ms {
            // A time that is given has passed at once.
            Some(_) => scheduled::let_others_run(),
            None => scheduled::sleep(word, expected),
        }
    }

    pub(super) fn wake(word: &AtomicU32, most: u32) {
        scheduled::wake(word, most);
    }

    pub(super) fn this_thread() -> usize {
        scheduled::this_thread()
    }
}

#[cfg(test)]
mod tests;
