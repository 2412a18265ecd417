//! Spans of which no block is out any more, and runs of large blocks that no list of freed ones has room for: a thread leaves them in a list, without the
//! lock. The next span of that length takes one there, in whatever thread, and who takes the lock frees all.
//!
//! ```text
//!             ┌─ a new span of that length ─▶ span
//!  emptied ─▶ list
//!             └─ the next lock, much is listed, or time to look for what has expired ─▶ dirty
//! ```
//!
//! So a mass of frees does not take the lock for each span or block, nor do threads whose spans come and go. Everything that takes the lock finds the runs free, whatever it takes it for: nobody sees that they were
//! listed. How many wait is bounded: with what is dirty, and in the lists of freed runs, they exceed the dirty bound by a quarter of it at most.
//!
//! Invariant: a listed run is in use for the page heap and nobody's otherwise: no block of it is out, a span has no entry in the page map and a large block's is
//! [`Entry::CACHED`], and the link `older` of its record is the list's.

use crate::page::allocation::Run;
use crate::page::page_heap::{PageHeap, StateGuard};
use crate::page::policy::large_cache_share::LISTED_MOST;
use crate::page::policy::purge_bound::After;
use crate::page::state::State;
use crate::span::{Entry, Kind, OwnedSpan, PageIndex, Span, blocks};
use freestone_base::units::{Moment, Pages};
use freestone_os::Os;

/// The most pages that are listed: 12 MiB. Who frees them holds the lock for as many short steps.
pub(super) const MOST: Pages = Pages(192);

/// Of the dirty bound, one part in this many may be listed in any case.
const SHARE: u32 = 4;

impl<O: Os> PageHeap<O> {
    /// Frees a span of which no block is out, as [`PageHeap::free_soon`].
    pub(crate) fn free_span(&self, span: OwnedSpan<'_>) {
        debug_assert_eq!(span.n_out.get(), 0, "the program has blocks of the span");
        let uncarved = if span.fresh.get() == 0 { 0 } else { blocks::uncarved_bytes(&span, self.os.os_page_bytes()) };
        if uncarved != 0 {
            self.uncarved.end_span(uncarved);
        }
        span.set_entries(Entry::NONE);
        self.free_soon(span.page(), &span, self.now());
    }

    /// Frees a run that is nobody's any more, a span without entries in the page map or a large block whose entry is [`Entry::CACHED`]: at the latest, when the lock is next taken. Now and then purges what has expired,
    /// too: a program without a background thread may make no other call that does.
    pub(super) fn free_soon(&self, page: PageIndex, record: &Span, now: Moment) {
        record.dirty_since_ms.set(now.0);
        let pages = record.n_pages();
        let is_span = record.kind.get() == Kind::Small;
        // A large block is listed here because its own lists are full: while the early bound holds, what is beyond it goes back at once.
        let has_room = self.emptied.count(pages) && (is_span || !self.freed.is_early());
        self.emptied.put(page, if is_span && pages <= LISTED_MOST { pages } else { Pages::ZERO }, record);
        let is_time = self.is_time_to_empty(&self.emptied, now);
        if is_time {
            self.emptied.note_look(now);
        }
        if !has_room || is_time {
            self.finish(self.lock(), now, if is_span { After::Other } else { After::LargeFree });
        } else {
            self.ahead.note_dirtied();
            self.watch.wake_for_dirty();
        }
    }

    /// Takes a span of `pages` that is listed.
    pub(super) fn take_emptied(&self, pages: Pages) -> Option<Run> {
        let page = self.take_listed(&self.emptied, pages)?;
        Some(Run { page, pages, zero: false })
    }

    /// Takes the lock, and frees what is listed. Who takes it may purge nothing: if too much is dirty now, the next that is emptied is not listed, and who
    /// empties it purges.
    pub(super) fn lock(&self) -> StateGuard<'_> {
        let mut state = self.lock_beside_emptied();
        if self.emptied.pages() != Pages::ZERO {
            self.free_emptied(&mut state);
            let dirty = state.runs.counts().of(Kind::Dirty);
            // Less than that may be dirty whatever the bound is.
            if dirty.to_bytes().0 as u64 > self.settings.dirty_bound_bytes(0) {
                self.bound_emptied(&state);
            }
        }
        state
    }

    /// Takes the lock, and leaves what is listed: for who takes a dirty run if there is one.
    pub(super) fn lock_beside_emptied(&self) -> StateGuard<'_> {
        let mut state = self.state.lock();
        state.listed = self.freed.pages() + self.emptied.pages();
        // Runs ahead come into use without the lock.
        state.runs.set_ahead(self.ahead.pages());
        state
    }

    /// Frees what is listed.
    pub(super) fn free_emptied(&self, state: &mut State) {
        let _ = self.free_listed(state, &self.emptied);
    }

    /// Sets how much may be listed: with what is dirty, and in the lists of freed runs, as much as the bound, but a quarter of it in any case; nothing if more than that is dirty.
    #[inline(never)]
    pub(super) fn bound_emptied(&self, state: &State) {
        let (dirty, bound) = (state.runs.counts().of(Kind::Dirty), state.emptied_bound(&self.settings));
        let most = bound.saturating_sub(dirty + self.freed.pages()).max(Pages(bound.0 / SHARE)).min(MOST);
        self.emptied.set_most(if dirty > bound { Pages::ZERO } else { most });
    }
}

#[cfg(test)]
mod tests;
