//! Initialising once, where the first call may come from anywhere and may fail.
//!
//! ```text
//! 0 not yet ── begin ──▶ 1 running ── done ──▶ 2 done
//!     ▲                     │ failed
//!     └─────────────────────┘
//! ```
//!
//! Unlike the standard library's `Once`, an attempt may fail, and a later call makes another. A thread that calls again from within its own
//! attempt waits for itself for ever: a caller that a signal handler may interrupt must keep the handler from calling this.

use crate::lock::Parking;
use crate::sync::{AtomicU32, Ordering};
use core::marker::PhantomData;

const NOT_YET: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;

/// See the module header.
///
/// ```
/// use freestone_base::lock::Spin;
/// use freestone_base::once::Once;
///
/// let once = Once::<Spin>::new();
/// assert!(!once.call(|| false), "the attempt failed, and another may be made");
/// assert!(once.call(|| true));
/// assert!(once.call(|| unreachable!()), "it is done");
/// ```
pub struct Once<P: Parking> {
    state: AtomicU32,
    parking: PhantomData<P>,
}

impl<P: Parking> Once<P> {
    /// Not done yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(NOT_YET), parking: PhantomData }
    }

    /// Not done yet.
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

    /// Runs `attempt`, which returns whether it succeeded, unless one has succeeded before; waits while another thread's attempt runs.
    /// Returns whether one has succeeded now. `attempt` must not call this again: it would wait for itself.
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
                    // The thread that finished woke one waiter, which wakes the next.
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
