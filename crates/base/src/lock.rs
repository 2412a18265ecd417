//! A mutual-exclusion lock with a rank.
//!
//! ```text
//! state: 0 free ── lock ──▶ 1 held ── someone waits ──▶ 2 held, wake one on release
//! ```
//!
//! Invariants: the state is 0 exactly when nobody is inside; a release that saw 2 wakes one waiter.
//! How to wait is a parameter ([`Parking`]): [`Spin`] here, a futex one layer up. The rank is data: a thread may only take
//! locks of rising rank, and `docs/concurrency.md` lists the ranks.
//! Cost: one atomic exchange in, one out, when nobody else is there. Nothing can fail.

use crate::sync::{AtomicU32, Ordering, spin_hint};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// How a thread waits for a lock word to change.
pub trait Parking {
    /// Returns when `word` may have changed from `expected`; may return early.
    fn wait(word: &AtomicU32, expected: u32);
    /// Lets one waiter on `word` go on.
    fn wake_one(word: &AtomicU32);
}

/// Waiting by spinning: for code without an operating system under it.
#[derive(Debug)]
pub struct Spin;

impl Parking for Spin {
    fn wait(_word: &AtomicU32, _expected: u32) {
        spin_hint();
    }
    fn wake_one(_word: &AtomicU32) {}
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A value that one thread at a time may touch. `RANK`: see the module header.
pub struct Lock<T, P: Parking = Spin, const RANK: u8 = 0> {
    state: AtomicU32,
    value: UnsafeCell<T>,
    parking: PhantomData<P>,
}

// SAFETY: the value is only reached through a guard, and the state word lets one guard exist at a time.
#[allow(unsafe_code)]
unsafe impl<T: Send, P: Parking, const RANK: u8> Sync for Lock<T, P, RANK> {}
// SAFETY: moving the lock moves the value; no guard can be alive then, for it borrows the lock.
#[allow(unsafe_code)]
unsafe impl<T: Send, P: Parking, const RANK: u8> Send for Lock<T, P, RANK> {}

impl<T, P: Parking, const RANK: u8> Lock<T, P, RANK> {
    /// A free lock around `value`.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value), parking: PhantomData }
    }

    /// A free lock around `value`.
    #[cfg(loom)]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value), parking: PhantomData }
    }

    /// Waits until the lock is free and takes it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T, P, RANK> {
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended();
        }
        Guard { lock: self }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, P, RANK>> {
        match self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(Guard { lock: self }),
            Err(_) => None,
        }
    }

    /// Spins a moment, then marks the lock contended and parks.
    #[cold]
    fn lock_contended(&self) {
        /// Tries before parking: about as long as the short critical sections here last (measured on 2 cores).
        const SPINS: u32 = 64;
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
            spin_hint();
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            P::wait(&self.state, CONTENDED);
        }
    }

    /// Takes the lock and leaves it taken: for a fork handler, which must hold every lock across the fork.
    pub fn acquire_raw(&self) {
        core::mem::forget(self.lock());
    }

    /// Releases a lock taken by [`Lock::acquire_raw`].
    ///
    /// # Safety
    /// - The calling thread (or, after a fork, the thread it is the copy of) took the lock with `acquire_raw` and has not
    ///   released it since.
    #[allow(unsafe_code)]
    pub unsafe fn release_raw(&self) {
        self.release();
    }

    /// The value, without locking: the exclusive borrow is the proof.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn release(&self) {
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            P::wake_one(&self.state);
        }
    }
}

/// The right to touch the value, until dropped.
pub struct Guard<'a, T, P: Parking, const RANK: u8> {
    lock: &'a Lock<T, P, RANK>,
}

impl<T, P: Parking, const RANK: u8> Deref for Guard<'_, T, P, RANK> {
    type Target = T;
    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one alive (see `Lock`).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, P: Parking, const RANK: u8> DerefMut for Guard<'_, T, P, RANK> {
    #[inline]
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one alive, and it is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, P: Parking, const RANK: u8> Drop for Guard<'_, T, P, RANK> {
    #[inline]
    fn drop(&mut self) {
        self.lock.release();
    }
}

#[cfg(test)]
mod tests;
