//! Large blocks where they are: growing, shrinking, and listing them.
//!
//! ```text
//!  │ block │ room to grow ……………… │        a block that grows is placed with free pages behind it
//!  │ block, grown        │ ………… │        and grows into them; the kernel gives memory when it is written
//! ```

use crate::page::large_list::{LargeList, PinnedList};
use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::growth;
use crate::page::policy::purge_bound::After;
use crate::page::runs::{Extent, FreeState};
use crate::page::state::State;
use crate::span::{Kind, PageIndex};
use freestone_base::units::{Bytes, Pages};
use freestone_os::Os;

impl<O: Os> PageHeap<O> {
    /// Makes a large block `pages` long, which is more than it is, or a little longer, by taking the free run behind it; `false` if there is
    /// none or it is too short.
    pub(crate) fn extend(&self, block: &OwnedRun, pages: Pages) -> bool {
        let whole = self.to_huge_page_end(Extent::new(block.page(), pages));
        let rounds = self.huge_page_for(pages).is_some() && growth::may_end_whole(pages, whole);
        (rounds && self.extend_to(block, whole)) || self.extend_to(block, pages)
    }

    /// Whether a large block that is to hold `size` is better copied to dirty memory than made longer where it is: it would get clean pages there.
    pub(crate) fn prefers_dirty(&self, block: &OwnedRun, size: Bytes) -> bool {
        let run = self.extent(block);
        let Some(pages) = size.to_pages().filter(|_| growth::prefers_dirty(run.pages.to_bytes(), size)) else {
            return false;
        };
        let mut state = self.lock();
        // The page behind a run starts a run, or was never used.
        let behind = state.runs.record(run.end()).kind.get();
        let is_dirty = matches!(behind, Kind::Dirty | Kind::Stuck);
        !is_dirty && self.look_for_dirty(&mut state, |state| state.runs.find_dirty(pages)).is_some()
    }

    /// As [`PageHeap::extend`], exactly.
    fn extend_to(&self, block: &OwnedRun, pages: Pages) -> bool {
        let run = self.extent(block);
        let (next, more) = (run.end(), pages - run.pages);
        if run.first.0 as usize + pages.0 as usize >= self.layout().n_pages {
            return false;
        }
        let Some(mut state) = self.keep_limits(self.lock(), more) else { return false };
        if state.runs.is_guard_before_room(next) {
            state.runs.end_guard(next);
        }
        let grown = self.take_behind(&mut state, block, more);
        if grown.is_none() {
            self.keep_guard(&mut state, run);
        }
        let Some(is_clean) = grown else { return false };
        drop(if is_clean { self.purge_in_exchange(state, more) } else { state });
        // A block that grows is written: its new part may have huge pages, and, if it is short, it gets its OS pages now.
        if self.huge_page_for(pages).is_some() {
            self.ask_for_huge_pages(block, run.pages);
        }
        if is_clean && growth::populates(run.pages, more) {
            self.populate(block, more);
        }
        true
    }

    /// Takes `more` pages of the free run behind a large block; at the high-water mark commits what is missing. Returns whether they are clean;
    /// `None` if there are fewer.
    fn take_behind(&self, state: &mut State, block: &OwnedRun, more: Pages) -> Option<bool> {
        let run = self.extent(block);
        let tail = state.runs.clean_tail();
        let is_at_tail = run.end() + tail == state.runs.high_water();
        if is_at_tail && tail < more && tail <= Pages(1) && self.commit_next(state, more - tail).is_err() {
            return None;
        }
        // The page behind a run starts a run, or was never used.
        let behind = state.runs.record(run.end());
        if !behind.kind.get().is_free_and_mapped() || behind.n_pages() < more {
            return None;
        }
        let was = state.runs.extend(run.first, more);
        if self.open_guards(state, Extent::new(run.end(), more)).is_err() {
            state.runs.shrink(run.first, run.pages, was);
            return None;
        }
        if let Some(list) = LargeList::of(self.record(block)) {
            list.grow(more);
        }
        self.note_in_use(state);
        // A block that has grown grows again: a new guard would be in its way.
        self.guard_behind(state, Kind::Large, self.extent(block), false);
        Some(was.kind == Kind::Clean)
    }

    /// Whether cutting a large block of `pages` down to `keep` gives back so little that it stays as it is: what growing by whole huge
    /// pages added.
    #[must_use]
    pub(crate) fn is_slack(&self, pages: Pages, keep: Pages) -> bool {
        self.huge_page_for(pages).is_some_and(|huge| pages - keep < huge)
    }

    /// Cuts the pages from `keep` (at least 1, and less than it has) on off a large block; they are dirty from now on.
    pub(crate) fn shrink(&self, block: &OwnedRun, keep: Pages) {
        let now = self.now();
        let mut state = self.lock();
        let (run, record) = (self.extent(block), self.record(block));
        if let Some(list) = LargeList::of(record) {
            list.shrink(run.pages - keep);
        }
        state.runs.shrink(run.first, keep, FreeState::dirty(now, record.is_huge.get()));
        self.finish(state, now, After::LargeFree);
    }

    /// Enters a large block into the list of an explicit heap; freeing it takes it out.
    pub(crate) fn list_large(&self, block: &OwnedRun, list: PinnedList<'_>) {
        let state = self.lock();
        list.add(&state.runs, self.extent(block));
    }

    /// Whether a large block is in `list`; without a list, whether it is in none. That does not change while the block is allocated.
    pub(crate) fn is_listed(&self, block: &OwnedRun, list: Option<&LargeList>) -> bool {
        LargeList::has(list, self.record(block))
    }

    /// The first page of the first large block of a list.
    #[must_use]
    pub(crate) fn first_large(&self, list: &LargeList) -> Option<PageIndex> {
        let _state = self.lock();
        list.first()
    }

    /// Pages in the large blocks of a list.
    #[must_use]
    pub(crate) fn listed_pages(&self, list: &LargeList) -> u64 {
        let _state = self.lock();
        list.pages()
    }
}

#[cfg(test)]
mod tests;
