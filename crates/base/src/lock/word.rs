//! The word of a lock: its state, and what threads do that find it taken. One copy of this code serves the locks of all values and ranks.
//!
//! ```text
//! state: 0 free ── lock ──▶ 1 held ── someone waits ──▶ 2 held, wake one on release
//!             └─ acquire_raw ─▶ FORK: held across a fork; FORK + 1 while the thread that forks is inside
//!  1, 2 ── acquire_raw ──▶ WANTED + 1, 2 ── release ──▶ FORK: handed over; no other thread can take it in between
//!  1, 2 ── overtaken too often ──▶ STARVED + 1, 2 ── release ──▶ GRANTED ──▶ 2: handed over likewise
//! ```
//!
//! Invariants: the state is 0 exactly when no thread is inside; a release that finds 2 wakes one waiter; the thread that holds a lock across a
//! fork enters it without waiting, and leaves it held. Whatever [`Parking`] says, there is one guard at a time.

use crate::lock::parking::Parking;
use crate::sync::{AtomicU32, Ordering, spin_hint};
use core::marker::PhantomData;

pub(super) const FREE: u32 = 0;
pub(super) const HELD: u32 = 1;
pub(super) const CONTENDED: u32 = 2;
/// Held across a fork. HELD beside it: the thread that forks is inside.
pub(super) const FORK: u32 = 1 << 31;
/// A thread waits for the end of the fork, or for a thread that the lock is being handed to.
pub(super) const WAITED_FOR: u32 = 1 << 30;
/// A thread that forks waits: the next release hands the lock to it.
pub(super) const WANTED: u32 = 1 << 29;
/// A thread that was overtaken too often waits: the next release hands the lock to it.
pub(super) const STARVED: u32 = 1 << 28;
/// The lock has been handed to the thread that was overtaken, which has not noticed yet.
pub(super) const GRANTED: u32 = 1 << 27;

/// The state, and how to wait.
pub(super) struct Word<P: Parking> {
    pub(super) state: AtomicU32,
    parking: PhantomData<P>,
}

impl<P: Parking> Word<P> {
    /// The word of a free lock.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self { state: AtomicU32::new(FREE), parking: PhantomData }
    }

    /// The word of a free lock.
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self { state: AtomicU32::new(FREE), parking: PhantomData }
    }

    /// Takes the lock. Not inlined: locks are taken in many places, none of them hot.
    #[inline(never)]
    pub(super) fn take(&self) {
        P::enter();
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended();
        }
    }

    /// Takes the lock if it is free. Returns whether it was.
    pub(super) fn try_take(&self) -> bool {
        P::enter();
        let is_taken = self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !is_taken {
            P::leave();
        }
        is_taken
    }

    /// Releases the lock.
    #[inline(never)]
    pub(super) fn release(&self) {
        if self.state.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.release_contended();
        }
        P::leave();
    }

    /// Spins for a moment, then marks the lock contended and waits. The thread that holds it across a fork enters at once.
    #[cold]
    fn lock_contended(&self) {
        /// Tries before waiting: about as long as the short critical sections of the heap last (measured on 2 cores).
        const SPINS: u32 = 64;
        let mut seen = self.state.load(Ordering::Relaxed);
        while seen & (FORK | HELD) == FORK && P::is_forking() {
            match self.state.compare_exchange(seen, seen | HELD, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
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

    /// Takes the lock, which then has the state `taken`, if it is free, or else waits until a release hands it over, which `mark` asks for. Without
    /// the mark, threads that arrive later could overtake this one again and again.
    #[cold]
    pub(super) fn be_handed(&self, taken: u32, mark: u32) {
        let mut seen = self.state.load(Ordering::Relaxed);
        let mut taken = taken;
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
                    if taken == FORK {
                        // The release may have woken this thread alone, while others wait: its own release has to wake the next.
                        taken |= WAITED_FOR;
                    }
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

    /// Releases a lock that other threads wait for: wakes one, or hands the lock over. A lock that this thread holds across a fork stays held.
    #[cold]
    fn release_contended(&self) {
        let mut seen = self.state.load(Ordering::Relaxed);
        loop {
            if seen & FORK != 0 {
                self.state.fetch_and(!HELD, Ordering::Release);
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
}
