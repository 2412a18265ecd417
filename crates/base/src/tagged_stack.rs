//! A list of numbers that many threads push onto and pop from, one number at a time, and of which any thread takes all at once.
//!
//! ```text
//!  63      32 31       0
//! ┌──────────┬──────────┐
//! │ tag      │ newest   │ ─▶ … ─▶ oldest ─▶ 0
//! └──────────┴──────────┘
//! ```
//!
//! The links are the caller's: a push says which number the pushed one links to, and a pop asks. Where numbers are popped, the links have to be atomics that stay
//! readable for good: a pop may ask for the link of a number that another thread has just popped, and then drops the answer.
//!
//! Invariants: exactly one pop or take returns each number that was pushed. Every change increments the tag, so that an old head is not mistaken for the
//! present one (ABA). The tag has 32 bits: a pop would go wrong only if, between its look at the head and its exchange, the list changed exactly 2^32 times, or a
//! multiple of that, and had the same head again.
//! Ordering: a push releases the object behind the number, its link included; a pop and a take acquire it. A take releases as well: a push that the take
//! misses sees what the taker wrote before.

use crate::sync::{AtomicU64, Ordering};

/// See the module header. Zeroed memory is an empty one.
///
/// ```
/// use freestone_base::tagged_stack::TaggedStack;
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// let (stack, links) = (TaggedStack::new(), [const { AtomicU32::new(0) }; 10]);
/// let push = |number: u32| stack.push(number, |next| links[number as usize].store(next, Relaxed));
/// let pop = || stack.pop(|number| links[number as usize].load(Relaxed));
/// push(7);
/// push(3);
/// assert_eq!((pop(), pop(), pop()), (Some(3), Some(7), None));
/// push(5);
/// assert_eq!((stack.take(), stack.take()), (5, 0));
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct TaggedStack(AtomicU64);

impl TaggedStack {
    /// An empty one.
    #[cfg(not(loom))]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is a part of statics only")]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// An empty one.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Pushes `number`, which is not 0 and not in the list. `link` is told what it links to: the number pushed before it, or 0; the last call counts.
    #[inline]
    pub fn push(&self, number: u32, link: impl Fn(u32)) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            link(head as u32);
            match self.0.compare_exchange(head, packed(head, number), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Pops the number that was pushed last; `None` if there is none. `link` returns what a number links to.
    #[inline]
    #[must_use]
    pub fn pop(&self, link: impl Fn(u32) -> u32) -> Option<u32> {
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            let number = head as u32;
            if number == 0 {
                return None;
            }
            match self.0.compare_exchange(head, packed(head, link(number)), Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(now) => head = now,
            }
        }
    }

    /// The number that was pushed last, or 0. The answer is out of date at once unless no other thread uses the list.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }

    /// Takes all numbers: returns the first, 0 if there is none.
    #[must_use]
    pub fn take(&self) -> u32 {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            match self.0.compare_exchange(head, packed(head, 0), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return head as u32,
                Err(now) => head = now,
            }
        }
    }
}

/// The head after `head` was changed to `first`: with the next tag.
fn packed(head: u64, first: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | u64::from(first)
}

#[cfg(test)]
mod tests;
