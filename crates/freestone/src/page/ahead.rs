//! Runs taken ahead: a thread that grows takes several runs for spans at once, so that it takes the lock once.
//!
//! ```text
//!  clean pages ── a row, in one piece ──▶ │ span │ ahead │ ahead │ ahead │ ── take_back ──▶ clean pages
//!                                                   └ the next span, without the lock
//! ```
//!
//! Runs ahead are clean: they have no memory, and cost address space and records. In the page heap they are runs of small spans, but no page map entry
//! names them, and they do not count as in use. Dirty memory comes first all the same: a run ahead is used only if nothing became dirty since a request
//! of this length found no dirty run. Under a hard limit nothing is taken ahead, and what was taken before is not used.

use crate::page::allocation::{Prefers, Run};
use crate::page::large_cache::LargeRunCache;
use crate::page::page_heap::PageHeap;
use crate::page::policy::purge_bound::After;
use crate::page::runs::{Extent, FreeState};
use crate::page::state::State;
use crate::span::{Kind, PageIndex};
use freestone_base::units::Pages;
use freestone_os::Os;

/// A run that was handed out for a span, and the right to make it one.
#[derive(Debug)]
pub(crate) struct SpanRun(Run);

impl SpanRun {
    /// Its first page.
    pub(crate) fn page(&self) -> PageIndex {
        self.0.page
    }

    /// Whether all of it reads as zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.0.zero
    }
}

/// Clean runs of one length, one behind the other, for their holder's next spans.
#[derive(Debug)]
pub(crate) struct RunsAhead {
    first: PageIndex,
    /// Pages of each.
    pages: Pages,
    n: u32,
    /// [`Ahead::dirtied`](crate::page::page_stats::Ahead::dirtied) before a request of this length found no dirty run.
    seen: u32,
}

impl RunsAhead {
    /// None.
    pub(crate) const NONE: Self = Self { first: PageIndex(0), pages: Pages::ZERO, n: 0, seen: 0 };

    /// How many there are.
    pub(crate) fn n(&self) -> u32 {
        self.n
    }
}

impl<O: Os> PageHeap<O> {
    /// Allocates a run of `pages` for a small span: an emptied span's if a dirty one is preferred and one is listed, or one of those `ahead`, if a search for a dirty one would find none, or a clean one is preferred. Else takes, if
    /// there are none ahead and the run is clean, up to `most` in all. `None` as for [`PageHeap::allocate`].
    pub(crate) fn allocate_span(
        &self,
        ahead: &mut RunsAhead,
        pages: Pages,
        most: u32,
        prefers: Prefers,
    ) -> Option<SpanRun> {
        if let Some(run) = (prefers == Prefers::Dirty).then(|| self.take_emptied(pages)).flatten() {
            return Some(SpanRun(run));
        }
        let seen = self.ahead.dirtied();
        let (has_some, fits) = (ahead.n > 0, ahead.pages == pages);
        // A hard limit that was set since they were taken counts memory when it comes into use.
        let may_use = self.settings.limit_hard_bytes().is_none();
        if has_some && fits && may_use && (ahead.seen == seen || prefers == Prefers::Clean) {
            let page = ahead.first;
            (ahead.first, ahead.n) = (page + pages, ahead.n - 1);
            self.ahead.subtract(pages);
            return Some(SpanRun(Run { page, pages, zero: true }));
        }
        let more = if has_some { 0 } else { most.saturating_sub(1) };
        let run = self.allocate_more(pages, Pages(1), Kind::Small, more, prefers)?;
        let has_searched = prefers == Prefers::Dirty;
        if !has_some {
            let n = run.pages.0 / pages.0 - 1;
            // Without a search, the runs are used without the lock only if nothing was ever dirty.
            *ahead = RunsAhead { first: run.page + pages, pages, n, seen: if has_searched { seen } else { 0 } };
        } else if fits && run.zero && has_searched {
            ahead.seen = seen;
        }
        Some(SpanRun(run))
    }

    /// Whether memory ever became dirty: a span or a large block was freed.
    pub(crate) fn was_ever_dirty(&self) -> bool {
        self.ahead.dirtied() != 0
    }

    /// Closes all slots of a cache, and takes runs ahead back: what was in the slots is dirty.
    pub(crate) fn take_back(&self, cache: &LargeRunCache, ahead: RunsAhead) {
        let now = self.now();
        let mut state = self.lock();
        self.free_ahead(&mut state, ahead);
        if cache.is_listed() {
            state.empty_cache(cache, now);
            self.ahead.note_dirtied();
            drop(self.purge_due(state, now, After::Other));
        }
    }

    /// Takes runs back that were not used.
    fn free_ahead(&self, state: &mut State, ahead: RunsAhead) {
        if ahead.n > 0 {
            let all = Extent::new(ahead.first, Pages(ahead.n * ahead.pages.0));
            state.runs.unite(all);
            state.runs.free(all.first, FreeState::CLEAN);
            state.events.fresh_bytes -= all.bytes() as u64;
            self.ahead.subtract(all.pages);
        }
    }
}

#[cfg(test)]
mod tests;
