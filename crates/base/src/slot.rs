//! A one-place cache for a number: one thread puts and takes, other threads may close it and take the number away.
//!
//! ```text
//!            open (with a number)          put
//!  closed ────────────────────────▶ full ◀────── empty
//!    ▲                               │ └──────────▲ │
//!    │                               │    take      │
//!    └─────────── close ─────────────┴──────────────┘
//! ```
//!
//! One thread, the *keeper*, puts and takes. *Closers* open and close, one at a time, under a lock of theirs.
//!
//! Invariants: exactly one take or close returns a number that was put, or that the slot was opened with. A closed slot refuses the keeper.
//! [`Slot::close_if_idle`] closes a slot only if the keeper has not used it since the previous call.
//! Ordering: put and open release, take and close acquire, so the keeper and the closers see what each other wrote to the object behind the number.
//! Cost: put and take are a load and a compare-and-swap each, on a cache line that the keeper alone uses most of the time.

use crate::sync::{AtomicU64, Ordering};

/// The slot is not closed.
const OPEN: u64 = 1 << 32;

/// Neither a put nor a take since the last [`Slot::close_if_idle`].
const IDLE: u64 = 1 << 33;

/// See the module header. Zeroed memory is a closed slot.
///
/// ```
/// use freestone_base::slot::{Content, Slot};
///
/// let slot = Slot::closed();
/// assert!(!slot.put(7), "a closed slot refuses");
/// slot.open(7);
/// assert_eq!(slot.take(), Some(7));
/// assert!(slot.put(7));
/// assert_eq!(slot.close(), Some(Content::Number(7)));
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Slot(AtomicU64);

/// What was in a slot when it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No number.
    Empty,
    /// This number, which the closer has now.
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

    /// Puts `number`, which is not 0, into an open, empty slot. Returns whether it did; if not, the keeper still has the number.
    #[inline]
    #[must_use]
    pub fn put(&self, number: u32) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & !IDLE == OPEN && self.exchange(word, OPEN | u64::from(number), Ordering::Release)
    }

    /// Takes the number out; `None` if the slot is empty or closed.
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

    /// Whether the slot is closed. For closers: only they change the answer.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// The number in the slot, or 0. The answer may be out of date unless the keeper is stopped.
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }

    /// Closes the slot and takes what was in it; `None` if it was closed.
    #[must_use]
    pub fn close(&self) -> Option<Content> {
        content(self.0.swap(0, Ordering::Acquire))
    }

    /// Closes the slot if the keeper has not used it since the previous call; `None` if it has, or if the slot was closed.
    #[must_use]
    pub fn close_if_idle(&self) -> Option<Content> {
        let word = self.0.load(Ordering::Relaxed);
        let idles = word & IDLE != 0;
        let next = if idles || word == 0 { 0 } else { word | IDLE };
        // An exchange that fails means that the keeper has just used the slot.
        (self.exchange(word, next, Ordering::Acquire) && idles).then(|| content(word)).flatten()
    }

    #[inline]
    fn exchange(&self, from: u64, to: u64, ordering: Ordering) -> bool {
        self.0.compare_exchange(from, to, ordering, Ordering::Relaxed).is_ok()
    }
}

/// The content that the word of a slot encodes; `None` if the slot is closed.
fn content(word: u64) -> Option<Content> {
    let content = if word as u32 == 0 { Content::Empty } else { Content::Number(word as u32) };
    (word != 0).then_some(content)
}

#[cfg(test)]
mod tests;
