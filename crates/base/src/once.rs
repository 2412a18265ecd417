//! Initialising once, where the first call may come from anywhere and may fail.
//!
//! ```text
//! 0 not yet ── begin ──▶ 1 running ── done ──▶ 2 done
//!     ▲                     │ failed
//!     └─────────────────────┘
//! ```
//!
//! Unlike the standard library's, an attempt may fail and be made again later. A thread that comes back from within its own attempt waits
//! for itself: where a signal handler could do that, the thread is marked first (the heap's `thread::current`).

use crate::lock::Parking;
use crate::sync::{AtomicU32, Ordering};
use core::marker::PhantomData;

const NOT_YET: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;

/// See the module header.
pub struct Once<P: Parking> {
    state: AtomicU32,
    parking: PhantomData<P>,
}

impl<P: Parking> Once<P> {
    /// Nothing done yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(NOT_YET), parking: PhantomData }
    }

    /// Nothing done yet.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { state: AtomicU32::new(NOT_YET), parking: PhantomData }
    }

    /// Whether it is done; if so, everything the attempt wrote is visible.
    #[inline]
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// Runs `attempt` unless it is done; waits for another thread's attempt. Returns whether it is done now.
    /// `attempt` must not come back here.
    pub fn call(&self, attempt: impl FnOnce() -> bool) -> bool {
        loop {
            match self.state.compare_exchange(NOT_YET, RUNNING, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    let ok = attempt();
                    self.state.store(if ok { DONE } else { NOT_YET }, Ordering::Release);
                    P::wake_one(&self.state);
                    return ok;
                }
                Err(DONE) => {
                    // Pass the wake-up on: the one who finished woke only one.
                    P::wake_one(&self.state);
                    return true;
                }
                Err(_) => P::wait(&self.state, RUNNING),
            }
        }
    }
}

impl<P: Parking> Default for Once<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
