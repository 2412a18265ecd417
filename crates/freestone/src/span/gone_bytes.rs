//! What went back inside spans of one class that have ended.

use crate::span::{Span, Uncarved, blocks};
use core::cell::Cell;

/// Bytes of one class that had gone back inside spans when these ended, and are not faulted in again. A new span of the class that begins in what others have
/// left is taken to fault in as many of them as it has.
#[derive(Debug)]
pub(crate) struct GoneBytes(Cell<u32>);

impl GoneBytes {
    /// None.
    pub(crate) const fn none() -> Self {
        Self(Cell::new(0))
    }

    /// A span ends.
    pub(crate) fn count(&self, span: &Span, os_page_bytes: usize) {
        if !span.fresh_is_zero.get() {
            self.0.set(self.0.get().saturating_add(blocks::uncarved_bytes(span, os_page_bytes) as u32));
        }
    }

    /// A span begins, if it is new, in what others have left.
    pub(crate) fn take_again(&self, span: &Span, uncarved: &Uncarved) {
        if span.fresh_has_memory.get() {
            let again = self.0.get().min(span.n_pages().to_bytes().0 as u32);
            self.0.set(self.0.get() - again);
            uncarved.take_again(i64::from(again));
        }
    }
}

#[cfg(test)]
mod tests;
