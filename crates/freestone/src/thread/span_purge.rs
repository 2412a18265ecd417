//! When the OS pages inside a heap's spans go back to the operating system.
//!
//! ```text
//!  more is free inside spans than the bound ─▶ a flush that turns from one span to the next lets the first wait, if it emptied an OS page
//!  up to 16 spans wait ─▶ the OS pages of all of them go back, with few system calls
//!  the bound was just passed, or a burst has ended ─▶ a sweep over all spans, once in a decay time at most
//! ```
//!
//! A flush gives blocks back span by span. One system call gives many OS pages back for about the price of two, so a span with empty ones waits for others.
//! In a small heap fewer wait ([`waiting_most`]), so that what waits is a small part of what a heap has. The rest goes back with a sweep, with the decay tick,
//! and when the heap's caches are emptied. The bound is higher while what goes back is needed again soon (`usage::in_vain`).
//!
//! Invariants
//! - Outside a flush, no span is being visited and none has emptied.
//! - What waits is a page index, not a promise: the span may have gone, and the page may be in another one of this heap or of another owner. Whoever takes it
//!   looks.
//!
//! Threads: only the heap's thread uses it.

use crate::central::is_due;
use crate::span::PageIndex;
use core::cell::Cell;

/// The most spans that wait for others.
const WAITING_MOST: usize = 16;

/// If so much more is free inside spans, all OS pages are purged again when that is asked for.
const MUCH_BYTES: i64 = 1 << 20;

/// Of a heap's pages, one in this many may be in spans that wait.
const PAGES_PER_WAITING: u64 = 16;

/// How many spans may wait in a heap with `n_pages` pages in spans.
fn waiting_most(n_pages: u64) -> usize {
    usize::try_from(n_pages / PAGES_PER_WAITING).unwrap_or(WAITING_MOST).clamp(1, WAITING_MOST)
}

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
    /// When all OS pages were last purged; 0: never. And the bytes free inside all spans after that.
    all_released_ms: Cell<u32>,
    /// See `all_released_ms`.
    free_then: Cell<i64>,
    /// The first pages of spans whose emptied OS pages are to go back, with those of others.
    waiting: [Cell<PageIndex>; WAITING_MOST],
    n_waiting: Cell<usize>,
}

impl SpanPurge {
    /// Nothing visited, nothing over the bound.
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        Self {
            visited: Cell::new(PageIndex::NONE),
            has_emptied: Cell::new(false),
            is_over_bound: Cell::new(false),
            needs_sweep: Cell::new(false),
            last_sweep_ms: Cell::new(0),
            all_released_ms: Cell::new(0),
            free_then: Cell::new(0),
            waiting: [const { Cell::new(PageIndex::NONE) }; WAITING_MOST],
            n_waiting: Cell::new(0),
        }
    }

    /// Whether blocks are being given back to the span at `page`.
    #[inline]
    pub(crate) fn is_at(&self, page: PageIndex) -> bool {
        self.visited.get() == page
    }

    /// Turns to the span at `page`, or from all spans if that is none. Returns the span turned from if it has emptied OS pages.
    #[inline]
    pub(crate) fn turn_to(&self, page: PageIndex) -> Option<PageIndex> {
        let before = self.visited.replace(page);
        self.has_emptied.replace(false).then_some(before)
    }

    /// Lets the span at `page` wait until its OS pages go back with those of others. Returns whether that is now, in a heap with `n_pages` pages in spans.
    pub(crate) fn wait(&self, page: PageIndex, n_pages: u64) -> bool {
        let n = self.n_waiting.get();
        let waiting = self.waiting.get(..n).unwrap_or_default();
        if !waiting.iter().any(|place| place.get() == page) {
            if let Some(place) = self.waiting.get(n) {
                place.set(page);
                self.n_waiting.set(n + 1);
            }
        }
        self.n_waiting.get() >= waiting_most(n_pages)
    }

    /// Takes one of the spans that wait, if there is one.
    pub(crate) fn take_waiting(&self) -> Option<PageIndex> {
        let last = self.n_waiting.get().checked_sub(1)?;
        self.n_waiting.set(last);
        self.waiting.get(last).map(Cell::get)
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

    /// Whether it is worth while to purge all OS pages, at `now_ms` and with so many bytes free inside all spans: programs that ask for it after each request would
    /// fault in what the next one needs.
    pub(crate) fn may_release_all(&self, now_ms: u32, decay_ms: u32, free_bytes: i64) -> bool {
        is_due(self.all_released_ms.get(), now_ms, decay_ms) || free_bytes - self.free_then.get() >= MUCH_BYTES
    }

    /// Notes that all OS pages were purged, after which so many bytes are free inside all spans.
    pub(crate) fn note_all_released(&self, now_ms: u32, free_bytes: i64) {
        self.all_released_ms.set(now_ms.max(1));
        self.free_then.set(free_bytes);
    }

    /// Whether a sweep may begin at `now_ms`; if so it counts as begun.
    pub(crate) fn begin_sweep(&self, now_ms: u32, decay_ms: u32) -> bool {
        if !is_due(self.last_sweep_ms.get(), now_ms, decay_ms) {
            return false;
        }
        self.last_sweep_ms.set(now_ms.max(1));
        self.needs_sweep.set(false);
        true
    }
}

#[cfg(test)]
mod tests;
