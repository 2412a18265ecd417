//! When the OS pages inside a heap's spans go back to the operating system.
//!
//! ```text
//!  more is free inside spans than the bound ─▶ a flush that turns from one span to the next gives back what it emptied in the first
//!  the bound was just passed, or a burst has ended ─▶ a sweep over all spans, once in a decay time at most
//! ```
//!
//! A flush gives blocks back span by span. OS pages that it emptied are purged when it turns to the next span, so that neighbours take one
//! system call. The code that gives blocks back outside a flush turns from the span at once: by the next flush the span may have another owner.
//!
//! Invariant: outside a flush, no span is being visited and none has emptied.
//! Threads: only the heap's thread uses it.

use crate::span::PageIndex;
use core::cell::Cell;

/// See the module header. Zero is right for a heap that has purged nothing.
#[derive(Debug)]
pub(crate) struct SpanPurge {
    /// The span that blocks are being given back to, by its first page, if there is one.
    visited: Cell<PageIndex>,
    /// An OS page of the visited span is empty, and is to go back.
    has_emptied: Cell<bool>,
    /// More is free inside spans than the bound allows.
    is_over_bound: Cell<bool>,
    /// The bound was passed, and OS pages that were emptied before are not purged yet.
    needs_sweep: Cell<bool>,
    /// When the spans were last swept; 0: never.
    last_sweep_ms: Cell<u32>,
}

impl SpanPurge {
    /// Nothing visited, nothing over the bound.
    pub(crate) const fn new() -> Self {
        Self {
            visited: Cell::new(PageIndex::NONE),
            has_emptied: Cell::new(false),
            is_over_bound: Cell::new(false),
            needs_sweep: Cell::new(false),
            last_sweep_ms: Cell::new(0),
        }
    }

    /// Whether blocks are being given back to the span at `page`.
    #[inline]
    pub(crate) fn is_at(&self, page: PageIndex) -> bool {
        self.visited.get() == page
    }

    /// Turns to the span at `page`, or from all spans if that is none. Returns the span turned from if its emptied OS pages are to go back now.
    #[inline]
    pub(crate) fn turn_to(&self, page: PageIndex) -> Option<PageIndex> {
        let before = self.visited.replace(page);
        self.has_emptied.replace(false).then_some(before)
    }

    /// Forgets the visited span: it has gone to the page heap as a whole.
    pub(crate) fn forget(&self) {
        self.visited.set(PageIndex::NONE);
        self.has_emptied.set(false);
    }

    /// Whether OS pages go back, so that each returned block is checked.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_over_bound.get()
    }

    /// Whether to check the next returned block: it may be the last of its OS page, and no page of this span has emptied yet.
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        self.is_over_bound.get() && !self.has_emptied.get()
    }

    /// Notes whether the returned block was the last of its OS page.
    pub(crate) fn note_emptied(&self, has_emptied: bool) {
        self.has_emptied.set(has_emptied);
    }

    /// Notes whether more is free inside spans than the bound allows. Returns whether the spans need a sweep.
    pub(crate) fn set_over_bound(&self, is_over: bool) -> bool {
        if is_over && !self.is_over_bound.get() {
            self.needs_sweep.set(true);
        }
        self.is_over_bound.set(is_over);
        self.needs_sweep.get()
    }

    /// Whether a sweep may begin at `now_ms`; if so it counts as begun.
    pub(crate) fn begin_sweep(&self, now_ms: u32, decay_ms: u32) -> bool {
        let last_ms = self.last_sweep_ms.get();
        if last_ms != 0 && now_ms.wrapping_sub(last_ms) < decay_ms {
            return false;
        }
        self.last_sweep_ms.set(now_ms.max(1));
        self.needs_sweep.set(false);
        true
    }
}

#[cfg(test)]
mod tests;
