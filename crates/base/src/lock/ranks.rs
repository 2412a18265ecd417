//! Which ranks each thread holds: a lock taken out of order panics the first time, not only when two threads deadlock.
//!
//! ```text
//! HELD[hash of the thread] = thread, count of rank 0, of rank 1, …
//! ```
//!
//! Only where `debug_assertions` are on, and not under Miri, where this would take most of the time of a lock; otherwise nothing is compiled. The
//! table needs neither thread-local storage nor a heap, so it works inside the allocator, in signal handlers and in a forked child. A thread writes
//! to its own entry alone. Entries are never removed: a thread's number is an address that later threads use again. Threads that find the table full
//! are not checked.

use crate::lock::parking::Parking;

/// Whether ranks are checked.
pub(super) const CHECKED: bool = cfg!(all(debug_assertions, not(any(loom, miri))));

/// Panics if the calling thread holds a lock of a higher rank, or of the same rank unless `equal` allows that. A thread that is forking may
/// enter any lock that it holds.
#[inline]
pub(super) fn may_take<P: Parking>(rank: u8, equal: bool) {
    if CHECKED && rank != 0 && (equal || !P::is_forking()) {
        let highest = table::highest(P::this_thread());
        assert!(
            highest < rank || (equal && highest == rank),
            "a lock of rank {rank} is taken while one of rank {highest} is held"
        );
    }
}

/// Notes that the calling thread took a lock.
#[inline]
pub(super) fn taken<P: Parking>(rank: u8) {
    if CHECKED {
        table::count(P::this_thread(), rank, true);
    }
}

/// Notes that the calling thread released a lock.
#[inline]
pub(super) fn released<P: Parking>(rank: u8) {
    if CHECKED {
        table::count(P::this_thread(), rank, false);
    }
}

mod table {
    use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

    /// Ranks are below this.
    const RANKS: usize = 32;

    /// Entries: threads that are checked at most.
    const THREADS: usize = 1024;

    struct Held {
        thread: AtomicUsize,
        counts: [AtomicU8; RANKS],
    }

    static HELD: [Held; THREADS] =
        [const { Held { thread: AtomicUsize::new(0), counts: [const { AtomicU8::new(0) }; RANKS] } }; THREADS];

    /// The entry of a thread, made if need be; `None` if it has no number, or there is no room.
    fn entry(thread: usize) -> Option<&'static Held> {
        if thread == 0 {
            return None;
        }
        let start = (thread >> 4).wrapping_mul(0x9E37_79B9) >> 8;
        (0..THREADS).map(|step| &HELD[start.wrapping_add(step) % THREADS]).find(|held| {
            let claimed = held.thread.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
            claimed.is_ok() || claimed == Err(thread)
        })
    }

    /// The highest rank that a thread holds; 0 if none.
    pub(super) fn highest(thread: usize) -> u8 {
        let Some(held) = entry(thread) else { return 0 };
        let highest = held.counts.iter().rposition(|count| count.load(Ordering::Relaxed) != 0);
        highest.unwrap_or(0) as u8
    }

    /// Counts a lock that a thread took, or released.
    pub(super) fn count(thread: usize, rank: u8, taken: bool) {
        if let Some(held) = entry(thread).filter(|_| rank != 0) {
            let count = &held.counts[usize::from(rank) % RANKS];
            let held = count.load(Ordering::Relaxed);
            count.store(if taken { held.wrapping_add(1) } else { held.wrapping_sub(1) }, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, debug_assertions, not(any(loom, miri))))]
mod tests;
