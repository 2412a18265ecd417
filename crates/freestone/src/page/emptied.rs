//! Spans of which no block is out any more, and runs of large blocks that no list of freed ones has room for: a thread leaves them in a list, without the
//! lock, and who takes the lock next frees all.
//!
//! ```text
//!  emptied ─▶ list ── the next lock, the list is long, or time to look for what has expired ─▶ dirty
//! ```
//!
//! So a mass of frees does not take the lock for each span or block. Everything that takes the lock finds the runs free, whatever it takes it for: nobody sees that they were
//! listed. How many wait is bounded: together with what is dirty already they exceed the dirty bound by [`MOST`](crate::page::emptied_list::MOST) at most.
//!
//! Invariant: a listed run is in use for the page heap and nobody's otherwise: no block of it is out, a span has no entry in the page map and a large block's is
//! [`Entry::CACHED`], and the link `next` of its record is the list's.

use crate::page::page_heap::{PageHeap, StateGuard};
use crate::page::policy::large_cache_share::check_interval;
use crate::page::runs::{Extent, FreeState};
use crate::page::state::State;
use crate::span::{Entry, Kind, OwnedSpan, PageIndex, Span};
use freestone_base::units::{Moment, Pages};
use freestone_os::Os;

impl<O: Os> PageHeap<O> {
    /// Frees a span of which no block is out, as [`PageHeap::free_soon`].
    pub(crate) fn free_span(&self, span: OwnedSpan<'_>) {
        debug_assert_eq!(span.n_out.get(), 0, "the program has blocks of the span");
        span.set_entries(Entry::NONE);
        self.free_soon(span.page(), &span, self.now());
    }

    /// Frees a run that is nobody's any more, a span without entries in the page map or a large block whose entry is [`Entry::CACHED`]: at the latest, when the lock is next taken. Now and then purges what has expired,
    /// too: a program without a background thread may make no other call that does.
    pub(super) fn free_soon(&self, page: PageIndex, record: &Span, now: Moment) {
        record.dirty_since_ms.set(now.0);
        let is_long = self.emptied.push(page, record);
        let is_time = self.decay().is_some_and(|decay| self.emptied.begin_look(now, check_interval(decay)));
        if is_long || is_time {
            self.finish(self.lock(), now);
        } else {
            self.ahead.note_dirtied();
            self.watch.wake_for_dirty();
        }
    }

    /// Takes the lock, and frees what is listed.
    pub(super) fn lock(&self) -> StateGuard<'_> {
        let mut state = self.state.lock();
        if !self.emptied.is_empty() {
            self.free_emptied(&mut state);
        }
        state.listed = self.freed.pages();
        state
    }

    /// Frees what is listed. A thread that lists a span later sees what this one wrote before.
    pub(super) fn free_emptied(&self, state: &mut State) {
        let mut next = self.emptied.take();
        while let Some(page) = next.some() {
            let record = state.runs.record(page);
            next = record.next.get();
            let free = FreeState::dirty(record.dirty_since(), record.is_huge.get());
            if record.kind.get() == Kind::Large {
                state.runs.set_entries(Extent::new(page, Pages(1)), Entry::NONE);
            }
            state.runs.free(page, free);
        }
        self.emptied.set_most(state.runs.counts().of(Kind::Dirty), state.dirty_bound(&self.settings));
    }
}

#[cfg(test)]
mod tests;
