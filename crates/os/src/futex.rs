//! Waiting for a lock word in the kernel.

use freestone_base::lock::Parking;
use freestone_base::sync::AtomicU32;
use rustix::thread::futex;

/// Parks waiters on the lock's own word.
#[derive(Debug)]
pub struct Futex;

impl Parking for Futex {
    fn wait(word: &AtomicU32, expected: u32) {
        // Any outcome (woken, interrupted, changed before we slept) sends the caller back to look at the word.
        let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
    }

    fn wake_one(word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }
}
