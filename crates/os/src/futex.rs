//! Waiting for a lock word in the kernel, and which thread is forking.

use crate::inside;
#[cfg(not(shuttle))]
use crate::kernel;
use core::sync::atomic::{AtomicUsize, Ordering};
use freestone_base::lock::Parking;
use freestone_base::sync::AtomicU32;

/// Lets waiters sleep in the kernel on the lock's own word.
///
/// ```
/// use freestone_base::lock::Lock;
/// use freestone_os::Futex;
///
/// static TOTAL: Lock<u64, Futex> = Lock::new(0);
/// *TOTAL.lock() += 1; // a thread that has to wait sleeps in the kernel
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
#[derive(Debug)]
pub struct Futex;

/// [`Parking::this_thread`] of the thread that is forking; 0 if none is.
static FORKING: AtomicUsize = AtomicUsize::new(0);

impl Futex {
    /// Notes that the calling thread is forking: it may now enter the locks that it has taken for the fork.
    pub fn begin_fork() {
        FORKING.store(Self::this_thread(), Ordering::Relaxed);
    }

    /// Notes that the fork is over, in the parent or the child.
    pub fn end_fork() {
        FORKING.store(0, Ordering::Relaxed);
    }

    /// Returns when `word` may have changed from `expected`, or after `ms` milliseconds if that is given; may return early.
    pub fn wait_for(word: &AtomicU32, expected: u32, ms: Option<u32>) {
        kernel::wait(word, expected, ms);
    }
}

// SAFETY: the kernel only compares the word.
#[allow(unsafe_code)]
unsafe impl Parking for Futex {
    fn wait(word: &AtomicU32, expected: u32) {
        kernel::wait(word, expected, None);
    }

    fn wake_one(word: &AtomicU32) {
        kernel::wake(word, false);
    }

    fn wake_all(word: &AtomicU32) {
        kernel::wake(word, true);
    }

    #[inline]
    fn enter() {
        inside::enter();
    }

    #[inline]
    fn leave() {
        inside::leave();
    }

    fn this_thread() -> usize {
        kernel::this_thread()
    }

    fn is_forking() -> bool {
        // Relaxed: only this thread writes its own number, and removes it.
        let forking = FORKING.load(Ordering::Relaxed);
        forking != 0 && forking == Self::this_thread()
    }
}

/// Waiting in the model under schedules, whose threads all run on one thread of the operating system.
#[cfg(shuttle)]
mod kernel {
    use super::AtomicU32;
    use freestone_base::sync::scheduled;

    pub(super) fn wait(word: &AtomicU32, expected: u32, ms: Option<u32>) {
        match ms {
            // Waits with a time limit end at once.
            Some(_) => scheduled::let_others_run(),
            None => scheduled::sleep(word, expected),
        }
    }

    pub(super) fn wake(word: &AtomicU32, all: bool) {
        scheduled::wake(word, if all { u32::MAX } else { 1 });
    }

    pub(super) fn this_thread() -> usize {
        scheduled::this_thread()
    }
}

#[cfg(test)]
mod tests;
