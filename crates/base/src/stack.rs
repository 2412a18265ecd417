//! A list of numbers that many threads push onto and one thread at a time takes as a whole.
//!
//! ```text
//! first ─▶ newest ─▶ … ─▶ oldest ─▶ 0
//! ```
//!
//! The links are the caller's: a push says which number the pushed one links to. No operation removes a single number, so there is no ABA problem.
//!
//! Invariant: exactly one take returns each number that was pushed.
//! Ordering: a push releases the object behind the number, its link included, and a take acquires it. A take releases as well: a push that the take
//! misses sees what the taker wrote before.

use crate::sync::{AtomicU32, Ordering};

/// See the module header. Zeroed memory is an empty one.
///
/// ```
/// use freestone_base::stack::Stack;
/// use std::cell::Cell;
///
/// let (stack, links) = (Stack::new(), [const { Cell::new(0) }; 10]);
/// stack.push(7, |next| links[7].set(next));
/// stack.push(3, |next| links[3].set(next));
/// assert_eq!(stack.take(), 3);
/// assert_eq!((links[3].get(), links[7].get()), (7, 0));
/// assert_eq!(stack.take(), 0);
/// ```
#[derive(Debug)]
pub struct Stack(AtomicU32);

impl Stack {
    /// An empty one.
    #[cfg(not(loom))]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is a part of statics only")]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// An empty one.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Pushes `number`, which is not 0 and not in the list. `link` is told what it links to: the number pushed before it, or 0; the last call counts.
    pub fn push(&self, number: u32, link: impl Fn(u32)) {
        let mut first = self.0.load(Ordering::Relaxed);
        loop {
            link(first);
            match self.0.compare_exchange(first, number, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Whether nothing is in the list. Another thread may push meanwhile.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Takes all numbers: returns the first, 0 if there is none.
    #[must_use]
    pub fn take(&self) -> u32 {
        self.0.swap(0, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests;
