//! Waiting for loom models: a model of the kernel's futex, so that a lost wake-up shows as a deadlock.

use crate::lock::Parking;
use crate::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};

loom::lazy_static! {
    /// The kernel's queue. A model has one word that threads wait on.
    static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// See the module header.
#[derive(Debug)]
pub struct Parked;

// SAFETY: it does not change the word.
#[allow(unsafe_code)]
unsafe impl Parking for Parked {
    const WAITS_MOST: u32 = 2;

    fn wait(word: &AtomicU32, expected: u32) {
        let queue = QUEUE.0.lock().unwrap();
        // The kernel compares under its lock, and the thread that changes the word wakes waiters after that.
        if word.load(Ordering::Relaxed) == expected {
            drop(QUEUE.1.wait(queue));
        }
    }

    fn wake_one(_word: &AtomicU32) {
        let _queue = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_one();
    }

    fn wake_all(_word: &AtomicU32) {
        let _queue = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_all();
    }
}

/// As [`Parked`]; a thread asks for the lock to be handed over as soon as it has to wait.
#[derive(Debug)]
pub struct Impatient;

// SAFETY: it does not change the word.
#[allow(unsafe_code)]
unsafe impl Parking for Impatient {
    const WAITS_MOST: u32 = 0;

    fn wait(word: &AtomicU32, expected: u32) {
        Parked::wait(word, expected);
    }

    fn wake_one(word: &AtomicU32) {
        Parked::wake_one(word);
    }

    fn wake_all(word: &AtomicU32) {
        Parked::wake_all(word);
    }
}
