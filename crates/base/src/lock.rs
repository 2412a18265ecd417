//! A mutual-exclusion lock with a rank.
//!
//! ```text
//! state: 0 free ── lock ──▶ 1 held ── someone waits ──▶ 2 held, wake one on release
//!             └─ acquire_raw ─▶ FORK + n: held across a fork, and entered n times meanwhile by the thread that forks
//!  1, 2 ── acquire_raw ──▶ WANTED + 1, 2 ── release ──▶ FORK: handed over; no other thread can take it in between
//!  1, 2 ── overtaken too often ──▶ STARVED + 1, 2 ── release ──▶ GRANTED ──▶ 2: handed over likewise
//! ```
//!
//! Invariants: the state is 0 exactly when no thread is inside; a release that finds 2 wakes one waiter; the thread that holds a lock across a
//! fork enters it without waiting, and leaves it held.
//! How to wait is a parameter ([`Parking`]): [`Spin`] here, a futex one layer up. The rank is a parameter, too: a thread may only take
//! locks of rising rank, which `docs/concurrency.md` lists. Where `debug_assertions` are on, taking a lock out of order panics
//! (`ranks`); locks of rank 0 have no order.
//! Cost: one atomic operation to take the lock and one to release it, when no other thread is there. Nothing can fail.

use crate::sync::{AtomicU32, Ordering, spin_hint};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// How a thread waits for a lock word to change.
pub trait Parking {
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
    /// A number that no other living thread has, and that the thread keeps in a forked child; 0 where there is none.
    fn this_thread() -> usize {
        0
    }
    /// Whether the calling thread is forking: it holds the locks that were taken with [`Lock::acquire_raw`].
    fn is_forking() -> bool {
        false
    }
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
/// Held across a fork; the low bits count how often the thread that forks is inside.
const FORK: u32 = 1 << 31;
/// A thread waits for the end of the fork, or for a thread that the lock is being handed to.
const WAITED_FOR: u32 = 1 << 30;
/// A thread that forks waits: the next release hands the lock to it.
const WANTED: u32 = 1 << 29;
/// A thread that was overtaken too often waits: the next release hands the lock to it.
const STARVED: u32 = 1 << 28;
/// The lock has been handed to the thread that was overtaken, which has not noticed yet.
const GRANTED: u32 = 1 << 27;

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
        ranks::may_take::<P>(RANK, false);
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended();
        }
        self.note_taken();
        Guard { lock: self }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, P, RANK>> {
        match self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                self.note_taken();
                Some(Guard { lock: self })
            }
            Err(_) => None,
        }
    }

    /// Spins for a moment, then marks the lock contended and waits. The thread that holds it across a fork enters at once.
    #[cold]
    fn lock_contended(&self) {
        /// Tries before waiting: about as long as the short critical sections of the heap last (measured on 2 cores).
        const SPINS: u32 = 64;
        let mut seen = self.state.load(Ordering::Relaxed);
        if seen & FORK != 0 && P::is_forking() {
            // Only this thread changes the count; waiters set their bits beside it.
            self.state.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for _ in 0..SPINS {
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
            spin_hint();
        }
        for _ in 0..P::WAITS_MOST {
            let marked = if seen <= CONTENDED { CONTENDED } else { seen | WAITED_FOR };
            match self.state.compare_exchange(seen, marked, Ordering::Acquire, Ordering::Relaxed) {
                Ok(FREE) => return,
                Ok(_) => {
                    P::wait(&self.state, marked);
                    seen = self.state.load(Ordering::Relaxed);
                }
                Err(now) => seen = now,
            }
        }
        self.be_handed(CONTENDED, STARVED);
    }

    /// Takes the lock and leaves it taken: for a fork handler, which must hold every lock across the fork. While [`Parking::is_forking`]
    /// is true, the thread may enter the lock as if it were free. A thread may take several locks of one rank this way.
    pub fn acquire_raw(&self) {
        ranks::may_take::<P>(RANK, true);
        if self.state.compare_exchange(FREE, FORK, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.be_handed(FORK, WANTED);
        }
        ranks::taken::<P>(RANK);
    }

    /// Takes the lock, which then has the state `taken`, if it is free, or else waits until a release hands it over, which `mark` asks for. Without
    /// the mark, threads that arrive later could overtake this one again and again.
    #[cold]
    fn be_handed(&self, taken: u32, mark: u32) {
        let mut seen = self.state.load(Ordering::Relaxed);
        loop {
            // The lock is handed to one thread at a time, and to none during a fork.
            let is_others = seen & (FORK | WANTED | STARVED | GRANTED) != 0;
            let marked = match seen {
                FREE => taken,
                _ if is_others => seen | WAITED_FOR,
                _ => seen | mark,
            };
            match self.state.compare_exchange(seen, marked, Ordering::Acquire, Ordering::Relaxed) {
                Ok(FREE) => return,
                Ok(_) if is_others => {
                    P::wait(&self.state, marked);
                    seen = self.state.load(Ordering::Relaxed);
                }
                Ok(_) => {
                    seen = marked;
                    while seen & mark != 0 {
                        P::wait(&self.state, seen);
                        seen = self.state.load(Ordering::Acquire);
                    }
                    if seen & GRANTED != 0 {
                        // Another thread may have set WAITED_FOR in between: CONTENDED makes the release wake it.
                        self.state.swap(CONTENDED, Ordering::Relaxed);
                    }
                    return;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Releases a lock that [`Lock::acquire_raw`] has taken; any other lock stays as it is.
    pub fn release_raw(&self, _: Forker) {
        if self.state.load(Ordering::Relaxed) & FORK == 0 {
            return;
        }
        ranks::released::<P>(RANK);
        if self.state.swap(FREE, Ordering::Release) & WAITED_FOR != 0 {
            P::wake_one(&self.state);
        }
    }

    /// The value, without locking: the lock is borrowed exclusively, so no other thread is inside.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn release(&self) {
        if ranks::CHECKED && self.state.load(Ordering::Relaxed) & FORK == 0 {
            ranks::released::<P>(RANK);
        }
        if self.state.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.release_contended();
        }
    }

    /// Releases a lock that other threads wait for: wakes one, or hands the lock over. A lock that this thread holds across a fork stays held.
    #[cold]
    fn release_contended(&self) {
        let mut seen = self.state.load(Ordering::Relaxed);
        loop {
            if seen & FORK != 0 {
                self.state.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            let is_waited_for = seen & (WAITED_FOR | CONTENDED) != 0;
            let next = match seen & (WANTED | STARVED) {
                0 => FREE,
                STARVED => GRANTED,
                _ if is_waited_for => FORK | WAITED_FOR,
                _ => FORK,
            };
            match self.state.compare_exchange(seen, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if next != FREE => return P::wake_all(&self.state),
                Ok(_) => return P::wake_one(&self.state),
                Err(now) => seen = now,
            }
        }
    }

    /// Notes that this thread is inside, where ranks are checked.
    #[inline]
    fn note_taken(&self) {
        if ranks::CHECKED && self.state.load(Ordering::Relaxed) & FORK == 0 {
            ranks::taken::<P>(RANK);
        }
    }
}

/// Access to the value; dropping it releases the lock.
pub struct Guard<'a, T, P: Parking, const RANK: u8> {
    lock: &'a Lock<T, P, RANK>,
}

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

mod ranks;

#[cfg(test)]
mod tests;
