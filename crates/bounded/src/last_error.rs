//! The last refusal of an object that several threads may use at once.
//!
//! Threads: any. A thread that finds another one storing or reading does not wait: it stores nothing, or tries to read again a limited number of
//! times. So a signal handler, and the child of a fork at any moment, can do both.

use crate::error::FreestoneError;
use core::ffi::c_int;

/// See the module header.
#[cfg(target_has_atomic = "32")]
pub struct LastError(freestone_base::lock::Lock<FreestoneError, freestone_base::lock::Spin>);

/// On a processor without a compare-and-exchange no object is shared.
#[cfg(not(target_has_atomic = "32"))]
pub struct LastError(core::cell::Cell<FreestoneError>);

#[cfg(target_has_atomic = "32")]
impl LastError {
    /// Attempts to read before the reader gives up.
    const N_ATTEMPTS: usize = 1000;

    /// No call was refused.
    #[must_use]
    pub const fn new() -> Self {
        Self(freestone_base::lock::Lock::new(FreestoneError::NONE))
    }

    /// Stores a refusal. Returns its code.
    pub fn refuse(&self, error: FreestoneError) -> c_int {
        if let Some(mut place) = self.0.try_lock() {
            *place = error;
        }
        error.code
    }

    /// The last refusal that was stored; [`FreestoneError::NONE`] if there is none, or it cannot be read now.
    #[must_use]
    pub fn get(&self) -> FreestoneError {
        let read = || self.0.try_lock().map(|place| *place);
        let attempts = (0..Self::N_ATTEMPTS).find_map(|_| {
            core::hint::spin_loop();
            read()
        });
        attempts.unwrap_or(FreestoneError::NONE)
    }
}

#[cfg(not(target_has_atomic = "32"))]
impl LastError {
    /// No call was refused.
    #[must_use]
    pub const fn new() -> Self {
        Self(core::cell::Cell::new(FreestoneError::NONE))
    }

    /// Stores a refusal. Returns its code.
    pub fn refuse(&self, error: FreestoneError) -> c_int {
        self.0.set(error);
        error.code
    }

    /// The last refusal; [`FreestoneError::NONE`] if there is none.
    #[must_use]
    #[inline(never)]
    pub fn get(&self) -> FreestoneError {
        self.0.get()
    }
}

impl Default for LastError {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
