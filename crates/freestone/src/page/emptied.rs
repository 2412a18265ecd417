//! Spans of which no block is out any more: a thread that empties one leaves it in a list, without the lock, and who takes the lock next frees all.
//!
//! ```text
//!  emptied ─▶ list ── the next lock, or the list is long ─▶ dirty
//! ```
//!
//! So a mass of frees does not take the lock for each span. Everything that takes the lock finds the runs free, whatever it takes it for: nobody sees that they were
//! listed. How many wait is bounded: together with what is dirty already they exceed the dirty bound by [`MOST`] at most.
//!
//! Invariant: a listed run is in use for the page heap and nobody's otherwise: no block of it is out, no page map entry names it, and the links of its record are the
//! list's.

use crate::page::page_heap::{PageHeap, StateGuard};
use crate::page::runs::FreeState;
use crate::page::state::State;
use crate::span::{Entry, Kind, OwnedSpan, PageIndex};
use freestone_base::stack::Stack;
use freestone_base::sync::{AtomicU32, Ordering};
use freestone_base::units::Pages;
use freestone_os::Os;

/// The most pages that wait: 4 MiB. Who frees them holds the lock for as many short steps.
const MOST: Pages = Pages(64);

/// Of the dirty bound, one part in this many waits at most.
const SHARE: u32 = 4;

/// The list. See the module header.
#[derive(Debug)]
pub(super) struct Emptied {
    first: Stack,
    /// About how many pages are in it.
    pages: AtomicU32,
    /// With how many it is emptied.
    most: AtomicU32,
}

impl Emptied {
    /// An empty list.
    pub(super) const fn new() -> Self {
        Self { first: Stack::new(), pages: AtomicU32::new(0), most: AtomicU32::new(0) }
    }

    /// Lists a span. Returns whether so much is listed that the list should be emptied.
    fn push(&self, span: OwnedSpan<'_>) -> bool {
        let pages = span.n_pages().0;
        let n = self.pages.fetch_add(pages, Ordering::Relaxed).wrapping_add(pages);
        self.first.push(span.page().0, |next| span.next.set(PageIndex(next)));
        n >= self.most.load(Ordering::Relaxed)
    }

    /// Sets how much may wait while `dirty` pages are dirty and `bound` may be.
    pub(super) fn set_most(&self, dirty: Pages, bound: Pages) {
        let most = if dirty > bound { 0 } else { MOST.0.min(bound.0 / SHARE) };
        self.most.store(most, Ordering::Relaxed);
    }
}

impl<O: Os> PageHeap<O> {
    /// Frees a span of which no block is out: at the latest, when the lock is next taken.
    pub(crate) fn free_span(&self, span: OwnedSpan<'_>) {
        debug_assert_eq!(span.n_out.get(), 0, "the program has blocks of the span");
        let now = self.now();
        span.set_entries(Entry::NONE);
        span.dirty_since_ms.set(now.0);
        if self.emptied.push(span) || self.decay().is_some_and(|decay| decay.0 == 0) {
            self.finish(self.lock(), now);
        } else {
            self.ahead.note_dirtied();
            self.watch.wake_for_dirty();
        }
    }

    /// Takes the lock, and frees what is listed.
    pub(super) fn lock(&self) -> StateGuard<'_> {
        let mut state = self.state.lock();
        if !self.emptied.first.is_empty() {
            self.free_emptied(&mut state);
        }
        state
    }

    /// Frees what is listed. A thread that lists a span later sees what this one wrote before.
    pub(super) fn free_emptied(&self, state: &mut State) {
        self.emptied.pages.store(0, Ordering::Relaxed);
        let mut next = PageIndex(self.emptied.first.take());
        while let Some(page) = next.some() {
            let record = state.runs.record(page);
            next = record.next.get();
            let free = FreeState::dirty(record.dirty_since(), record.is_huge.get());
            state.runs.free(page, free);
        }
        self.emptied.set_most(state.runs.counts().of(Kind::Dirty), state.dirty_bound(&self.settings));
    }
}

#[cfg(test)]
mod tests;
