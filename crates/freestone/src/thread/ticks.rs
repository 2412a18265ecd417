//! When a heap's periodic work was last done, in milliseconds of the kernel's clock, cut to 32 bits.
//!
//! Threads: only the heap's thread uses it.

use core::cell::Cell;

/// See the module header. Zero is right for a heap that has done nothing.
#[derive(Debug)]
pub(crate) struct Ticks {
    last_tick_ms: Cell<u32>,
    last_look_ms: Cell<u32>,
}

impl Ticks {
    /// Nothing done.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self { last_tick_ms: Cell::new(0), last_look_ms: Cell::new(0) }
    }

    /// Whether the decay tick is due at `now_ms`; if so it counts as done.
    pub(crate) fn begin_tick(&self, now_ms: u32, decay_ms: u32) -> bool {
        Self::begin(&self.last_tick_ms, now_ms, decay_ms)
    }

    /// Whether it is time to purge expired memory on behalf of frees that did not need the page heap; if so that counts as done.
    #[inline]
    pub(crate) fn begin_look(&self, now_ms: u32, period_ms: u32) -> bool {
        Self::begin(&self.last_look_ms, now_ms, period_ms)
    }

    #[inline]
    fn begin(last_ms: &Cell<u32>, now_ms: u32, period_ms: u32) -> bool {
        let is_due = now_ms.wrapping_sub(last_ms.get()) >= period_ms;
        if is_due {
            last_ms.set(now_ms);
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
