//! How threads wait for a lock.
#![allow(unsafe_code)]

use crate::sync::{AtomicU32, spin_hint};

/// How a thread waits for a lock word to change.
///
/// ```
/// use core::sync::atomic::AtomicU32;
/// use freestone_base::lock::{Lock, Parking};
///
/// /// Lets other threads of the operating system run.
/// struct Yielding;
///
/// // SAFETY: no function touches the word.
/// unsafe impl Parking for Yielding {
///     fn wait(_word: &AtomicU32, _expected: u32) {
///         std::thread::yield_now();
///     }
///     fn wake_one(_word: &AtomicU32) {}
/// }
///
/// static TOTAL: Lock<u64, Yielding> = Lock::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
///
/// # Safety
/// - No function changes the word that it is passed: it is the lock's own, and says whether there is a guard.
pub unsafe trait Parking {
    /// A thread that has waited this often for one entry asks for the lock to be handed over. While it is handed over no other thread can take it,
    /// so every waiter sleeps once more: hence not after the first wait.
    const WAITS_MOST: u32 = 16;
    /// Returns when `word` may have changed from `expected`; may return early.
    fn wait(word: &AtomicU32, expected: u32);
    /// Wakes one waiter on `word`.
    fn wake_one(word: &AtomicU32);
    /// Wakes all waiters on `word`. An implementation whose waiters sleep needs this wherever the lock may be handed over.
    fn wake_all(word: &AtomicU32) {
        Self::wake_one(word);
    }
    /// The calling thread is about to take a lock.
    fn enter() {}
    /// The calling thread has released a lock, or not taken it after all.
    fn leave() {}
    /// A number that no other living thread has, and that the thread keeps in a forked child; 0 where there is none.
    fn this_thread() -> usize {
        0
    }
    /// Whether the calling thread is forking: it holds the locks that were taken with [`Lock::acquire_raw`](super::Lock::acquire_raw).
    fn is_forking() -> bool {
        false
    }
}

/// Waiting by spinning: for code without an operating system under it.
#[derive(Debug)]
pub struct Spin;

// SAFETY: it does not touch the word.
unsafe impl Parking for Spin {
    fn wait(_word: &AtomicU32, _expected: u32) {
        spin_hint();
    }
    fn wake_one(_word: &AtomicU32) {}
}
