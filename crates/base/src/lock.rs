//! A mutual-exclusion lock with a rank.
//!
//! How to wait is a parameter ([`Parking`]): [`Spin`] here, a futex one layer up. The rank is a parameter, too: a thread may only take
//! locks of rising rank, which `docs/concurrency.md` lists. Where `debug_assertions` are on, taking a lock out of order panics
//! (`ranks`); locks of rank 0 have no order.
//! Cost: one atomic operation to take the lock and one to release it, when no other thread is there. Nothing can fail.

use crate::sync::Ordering;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
pub use parking::{Parking, Spin};
use word::{FORK, FREE, HELD, WAITED_FOR, WANTED, Word};

/// The proof that the calling thread may release what was taken for a fork: it took these locks, or, in the child, is the copy of the thread that
/// did.
#[derive(Clone, Copy, Debug)]
pub struct Forker {
    not_send: PhantomData<*const u8>,
}

impl Forker {
    /// The proof, for a fork that is over.
    ///
    /// # Safety
    /// - Of the locks that are released with the proof, those that [`Lock::acquire_raw`] took and nothing has released since were taken by the
    ///   calling thread, or, in a forked child, by the thread that it is the copy of.
    /// - The calling thread holds no guard of them.
    #[allow(unsafe_code)]
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self { not_send: PhantomData }
    }
}

/// A value that one thread at a time may touch. `RANK`: see the module header.
///
/// ```
/// use freestone_base::lock::{Lock, Spin};
///
/// static TOTAL: Lock<u64, Spin> = Lock::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| *TOTAL.lock() += 1);
///     }
/// });
/// assert_eq!(*TOTAL.lock(), 2);
/// ```
pub struct Lock<T, P: Parking = Spin, const RANK: u8 = 0> {
    word: Word<P>,
    value: UnsafeCell<T>,
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
        Self { word: Word::new(), value: UnsafeCell::new(value) }
    }

    /// A free lock around `value`.
    #[cfg(loom)]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { word: Word::new(), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free and takes it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T, P, RANK> {
        ranks::may_take::<P>(RANK, false);
        self.word.take();
        self.note_taken();
        Guard { lock: self, value: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, P, RANK>> {
        self.word.try_take().then(|| {
            self.note_taken();
            Guard { lock: self, value: PhantomData }
        })
    }

    /// Takes the lock and leaves it taken: for a fork handler, which must hold every lock across the fork. While [`Parking::is_forking`]
    /// is true, the thread may enter the lock as if it were free, once at a time. A thread may take several locks of one rank this way.
    pub fn acquire_raw(&self) {
        ranks::may_take::<P>(RANK, true);
        if self.word.state.compare_exchange(FREE, FORK, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.word.be_handed(FORK, WANTED);
        }
        ranks::taken::<P>(RANK);
    }

    /// Releases a lock that [`Lock::acquire_raw`] has taken; any other lock stays as it is.
    pub fn release_raw(&self, _: Forker) {
        if self.word.state.load(Ordering::Relaxed) & FORK == 0 {
            return;
        }
        ranks::released::<P>(RANK);
        // A guard that there still is keeps the lock held.
        if self.word.state.fetch_and(HELD, Ordering::Release) & WAITED_FOR != 0 {
            P::wake_one(&self.word.state);
        }
    }

    /// The value, without locking: the lock is borrowed exclusively, so no other thread is inside.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn release(&self) {
        if ranks::CHECKED && self.word.state.load(Ordering::Relaxed) & FORK == 0 {
            ranks::released::<P>(RANK);
        }
        self.word.release();
    }

    /// Notes that this thread is inside, where ranks are checked.
    #[inline]
    fn note_taken(&self) {
        if ranks::CHECKED && self.word.state.load(Ordering::Relaxed) & FORK == 0 {
            ranks::taken::<P>(RANK);
        }
    }
}

/// Access to the value; dropping it releases the lock. It stays with the thread that took the lock.
///
/// ```compile_fail,E0277
/// use freestone_base::lock::{Lock, Spin};
///
/// static TOTAL: Lock<u64, Spin> = Lock::new(0);
/// let guard = TOTAL.lock();
/// std::thread::spawn(move || drop(guard));
/// ```
pub struct Guard<'a, T, P: Parking, const RANK: u8> {
    lock: &'a Lock<T, P, RANK>,
    /// The guard gives the access of such a reference. As a pointer is, it is not sent: the thread that [`Parking::enter`] was called by calls [`Parking::leave`].
    value: PhantomData<(&'a mut T, *const T)>,
}

// SAFETY: a shared guard gives shared access to the value, and is not dropped. It is `Sync` only if the value is; the lock is `Sync` for any value that can be sent.
#[allow(unsafe_code)]
unsafe impl<T: Sync, P: Parking, const RANK: u8> Sync for Guard<'_, T, P, RANK> {}

impl<T, P: Parking, const RANK: u8> Deref for Guard<'_, T, P, RANK> {
    type Target = T;
    #[inline]
    #[allow(unsafe_code)]
    fn deref(&self) -> &T {
        // SAFETY: the state word lets one guard of the lock exist at a time, and this is it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, P: Parking, const RANK: u8> DerefMut for Guard<'_, T, P, RANK> {
    #[inline]
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the state word lets one guard of the lock exist at a time, and this one is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, P: Parking, const RANK: u8> Drop for Guard<'_, T, P, RANK> {
    #[inline]
    fn drop(&mut self) {
        self.lock.release();
    }
}

mod parking;
mod ranks;
mod word;

#[cfg(test)]
mod tests;
