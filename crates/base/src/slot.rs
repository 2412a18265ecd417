//! A place where one thread keeps a number, and from which others may take it away.
//!
//! ```text
//!            open (with a number)          put
//!  closed ────────────────────────▶ full ◀────── empty
//!    ▲                               │ └──────────▲ │
//!    │                               │    take      │
//!    └─────────── close ─────────────┴──────────────┘
//! ```
//!
//! Who may do what: the *keeper*, one thread, puts and takes; *closers*, one at a time (under a lock), open and close.
//!
//! Invariants: a number that was put, or opened with, is returned by exactly one take or close. A closed slot refuses the keeper.
//! [`Slot::close_if_idle`] closes only what the keeper has not touched since the one before.
//! Ordering: put and open release, take and close acquire: what the number names passes with it.
//! Cost: put and take are a load and a compare-and-swap, on a cache line that is the keeper's.

use crate::sync::{AtomicU64, Ordering};

/// The slot is not closed.
const OPEN: u64 = 1 << 32;

/// Neither put nor take since the last look.
const IDLE: u64 = 1 << 33;

/// See the module header. Zeroed memory is a closed slot.
#[derive(Debug)]
#[repr(transparent)]
pub struct Slot(AtomicU64);

/// What a slot had when it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Had {
    /// Nothing.
    Nothing,
    /// This number, which is the closer's now.
    Number(u32),
}

impl Slot {
    /// A closed slot.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn closed() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A closed slot.
    #[cfg(loom)]
    #[must_use]
    pub fn closed() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Puts `number`, which is not 0, into an empty slot; `false` if the slot is not empty, and the number is still the keeper's.
    #[inline]
    #[must_use]
    pub fn put(&self, number: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & !IDLE == OPEN && self.exchange(word, OPEN | u64::from(number), Ordering::Release)
    }

    /// Takes the number out; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<u32> {
        let word = self.0.load(Ordering::Relaxed);
        let number = word as u32;
        (number != 0 && self.exchange(word, OPEN, Ordering::Acquire)).then_some(number)
    }

    /// Opens a closed slot, with `number`, which is not 0, in it.
    pub fn open(&self, number: u32) {
        self.0.store(OPEN | u64::from(number), Ordering::Release);
    }

    /// Whether the slot is closed; for closers.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// The number in it, or 0. Right only if the keeper is at rest.
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }

    /// Closes the slot; `None` if it was closed.
    #[must_use]
    pub fn close(&self) -> Option<Had> {
        had(self.0.swap(0, Ordering::Acquire))
    }

    /// Closes the slot if the keeper has not used it since the last call; `None` if it has, or the slot was closed.
    #[must_use]
    pub fn close_if_idle(&self) -> Option<Had> {
        let word = self.0.load(Ordering::Relaxed);
        let idles = word & IDLE != 0;
        let next = if idles || word == 0 { 0 } else { word | IDLE };
        // Where the exchange fails the keeper has just used it.
        (self.exchange(word, next, Ordering::Acquire) && idles).then(|| had(word)).flatten()
    }

    #[inline]
    fn exchange(&self, from: u64, to: u64, ordering: Ordering) -> bool {
        self.0.compare_exchange(from, to, ordering, Ordering::Relaxed).is_ok()
    }
}

fn had(word: u64) -> Option<Had> {
    let had = if word as u32 == 0 { Had::Nothing } else { Had::Number(word as u32) };
    (word != 0).then_some(had)
}

#[cfg(test)]
mod tests;
