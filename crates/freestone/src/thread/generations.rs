//! Generations: the numbers that distinguish the owners of spans in the page map.
//!
//! Each new heap gets a number that no heap had before, until all numbers of its half were given out once (2^23 heaps). From then on the
//! numbers of heaps that are still alive are skipped.

use crate::span::Generation;

/// The generations of thread heaps, or of explicit heaps.
#[derive(Debug)]
pub(crate) struct Generations {
    next: Generation,
    first: Generation,
    has_wrapped: bool,
}

impl Generations {
    /// None given out yet; `first` is the first of its half.
    pub(crate) const fn from(first: Generation) -> Self {
        Self { next: first, first, has_wrapped: false }
    }

    /// A generation that no heap has. `is_in_use` is asked once the numbers have wrapped.
    pub(crate) fn draw(&mut self, is_in_use: impl Fn(Generation) -> bool) -> Generation {
        loop {
            let drawn = self.next;
            self.next = drawn.next();
            let could_be_in_use = self.has_wrapped;
            self.has_wrapped |= self.next == self.first;
            if !could_be_in_use || !is_in_use(drawn) {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests;
