//! Sleeping and waking of the background thread and of threads that wait for purges.
//!
//! ```text
//!  background thread   sleep ──▶ asleep ── a free makes memory dirty, or a thread calls `wake` ──▶ awake
//!  a thread at a limit wait  ── a purge ends ──▶
//! ```

use freestone_base::lock::Parking;
use freestone_base::sync::{AtomicBool, AtomicU32, Ordering, fence};
use freestone_base::units::Millis;
use freestone_os::Futex;

/// See the module header.
#[derive(Debug)]
pub(super) struct Watch {
    /// How often the background thread was woken.
    wakes: AtomicU32,
    /// The background thread sleeps until something becomes dirty.
    asleep: AtomicBool,
    /// Purges that ended while a thread waited for that. Changed under the page heap's lock.
    purges: AtomicU32,
}

impl Watch {
    /// No thread sleeps.
    pub(super) const fn new() -> Self {
        Self { wakes: AtomicU32::new(0), asleep: AtomicBool::new(false), purges: AtomicU32::new(0) }
    }

    /// How often the background thread was woken: read before it looks for work, and given to [`Watch::sleep`].
    pub(super) fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Acquire)
    }

    /// Sleeps until `ms` have passed, or another thread calls [`Watch::wake`]; not at all if one did since `wakes` was read. `waits_for_dirt`:
    /// also until something becomes dirty; not at all if `is_dirty`, which takes the page heap's lock.
    pub(super) fn sleep(&self, wakes: u32, ms: Option<u32>, waits_for_dirt: bool, is_dirty: impl FnOnce() -> bool) {
        self.asleep.store(waits_for_dirt, Ordering::Relaxed);
        // A free before the line above woke no thread, and `is_dirty` sees it; a free that takes the lock after `is_dirty` sees the flag.
        if !waits_for_dirt || !is_dirty() {
            Futex::wait_for(&self.wakes, wakes, ms);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the background thread.
    pub(super) fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Release);
        Futex::wake_one(&self.wakes);
    }

    /// Wakes the background thread if it sleeps until something becomes dirty, which has just happened.
    pub(super) fn wake_for_dirty(&self) {
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Has the background thread look for work once more before it sleeps, or wakes it if it sleeps until there is something to do.
    pub(super) fn wake_for_work(&self) {
        self.wakes.fetch_add(1, Ordering::Release);
        // The kernel has such a fence before it reads the count: so the sleeper sees this, or the line below sees the flag.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            Futex::wake_one(&self.wakes);
        }
    }

    /// Purges that ended while a thread waited for that.
    pub(super) fn purges(&self) -> u32 {
        self.purges.load(Ordering::Relaxed)
    }

    /// Wakes the threads that wait for a purge.
    pub(super) fn end_purge(&self) {
        self.purges.fetch_add(1, Ordering::Relaxed);
        Futex::wake_all(&self.purges);
    }

    /// Waits until [`Watch::purges`] is no longer `seen`, or `most` has passed.
    pub(super) fn await_purge(&self, seen: u32, most: Millis) {
        Futex::wait_for(&self.purges, seen, Some(most.0));
    }
}

#[cfg(test)]
mod tests;
