//! Waiting for a lock word in the kernel.

use freestone_base::lock::Parking;
use freestone_base::sync::AtomicU32;

/// Parks waiters on the lock's own word.
#[derive(Debug)]
pub struct Futex;

#[cfg(not(shuttle))]
mod kernel {
    use super::Futex;
    use freestone_base::sync::AtomicU32;
    use rustix::thread::futex;
    use rustix::thread::futex::Timespec;

    impl Futex {
        /// Returns when `word` may have changed from `expected`, or after `ms` milliseconds if that is given; may return early.
        pub fn wait_for(word: &AtomicU32, expected: u32, ms: Option<u32>) {
            let timeout =
                ms.map(|ms| Timespec { tv_sec: i64::from(ms / 1000), tv_nsec: i64::from(ms % 1000) * 1_000_000 });
            // Any outcome (woken, interrupted, changed before we slept, too late) sends the caller back to look at the word.
            let _ = futex::wait(word, futex::Flags::PRIVATE, expected, timeout.as_ref());
        }

        pub(super) fn wake(word: &AtomicU32) {
            let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
        }
    }
}

/// The kernel of the model under schedules.
#[cfg(shuttle)]
mod kernel {
    use super::Futex;
    use freestone_base::sync::{AtomicU32, scheduled};

    impl Futex {
        /// Returns when `word` may have changed from `expected`; with a time that is given, it has passed at once.
        pub fn wait_for(word: &AtomicU32, expected: u32, ms: Option<u32>) {
            match ms {
                Some(_) => scheduled::let_others_run(),
                None => scheduled::sleep(word, expected),
            }
        }

        pub(super) fn wake(word: &AtomicU32) {
            scheduled::wake_one(word);
        }
    }
}

impl Parking for Futex {
    fn wait(word: &AtomicU32, expected: u32) {
        Self::wait_for(word, expected, None);
    }

    fn wake_one(word: &AtomicU32) {
        Self::wake(word);
    }
}
