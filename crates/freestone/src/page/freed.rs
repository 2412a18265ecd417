//! Freed runs of large blocks on their way to the next block: a thread that frees a large block of up to 1 MiB leaves its run in a list, without the
//! lock, and the next block of that length takes it there, in whatever thread.
#![allow(unsafe_code)]
//!
//! ```text
//!              list_freed                       take_freed
//!  large block ───────────▶ list of its length ────────────▶ large block
//!                              ▲      │
//!     fill, when a block finds │      │ empty_freed: no dirty run is long enough, memory beyond the bound
//!     no run in its list       │      ▼ or a limit is to be purged, or a quarter of the decay time has passed
//!                             dirty runs
//! ```
//!
//! Blocks of many lengths that come and go find a run of their length most of the time. If one does not, it takes a dirty run under the lock, and a few more of
//! that length into the list. If no dirty run is long enough, the lists are emptied: their runs join with their neighbours, and half as many of each length
//! as there were are cut again where that is possible. So the lists keep nobody from using memory that is free, and no clean page is taken while a run
//! in a list would do. `docs/decisions/0058-large-blocks-of-many-lengths.md` has the measurements.
//!
//! Invariants
//! - For the page heap's sets and counts a run in a list is in use (`Kind::Large`, of no explicit heap). Its page map entry is [`Entry::CACHED`], so that a
//!   second free of it is seen. Its record says since when it is free.
//! - When a run is put, dirty memory, open slots of large-run caches and lists are within the dirty bound together; lists alone are within the bound of a program that does not churn.
//!
//! # Safety
//! Who takes a run out of a list has exclusive access to it, as who puts it had before. Records and entries of pages that were once in a run stay committed.

use crate::page::allocation::Run;
use crate::page::large_list::LargeList;
use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::large_cache_share::{FILLED, LISTED_MOST, check_interval};
use crate::page::run_lists::{LENGTHS, Numbers, RunLists};
use crate::page::runs::{Broken, Extent, FreeState, hold};
use crate::page::state::State;
use crate::span::{Entry, Kind, PageIndex};
use core::ptr;
use freestone_base::sync::Ordering;
use freestone_base::units::{Moment, Pages};
use freestone_os::Os;

impl<O: Os> PageHeap<O> {
    /// Frees the run of a large block, whose memory is used no more, without the lock: leaves it in a list for the next block, or, if there are enough, in that of runs
    /// which are freed when the lock is next taken.
    ///
    /// # Errors
    /// The run, if it is too long or an explicit heap's, or if it is time to look for what has expired: a program without a background thread may make no
    /// other call that does.
    pub(crate) fn list_freed(&self, run: OwnedRun) -> Result<(), OwnedRun> {
        let (page, record, now) = (run.page(), self.record(&run), self.now());
        let pages = record.n_pages();
        if pages > LISTED_MOST || !LargeList::has(None, record) || self.is_time_to_empty(&self.freed, now) {
            return Err(run);
        }
        // The entry comes first: once the run is in a list, another thread may have it.
        // SAFETY: the run is the caller's, and in use, so its first page has an entry.
        unsafe { self.layout().map.set_one(page, Entry::CACHED) };
        if self.freed.make_room(pages) {
            record.dirty_since_ms.set(now.0);
            self.freed.put(page, pages, record);
            self.ahead.note_dirtied();
            self.watch.wake_for_dirty();
        } else {
            self.free_soon(page, record, now);
        }
        Ok(())
    }

    /// Takes a run of `pages` out of its list for a large block.
    pub(crate) fn take_freed(&self, pages: Pages) -> Option<Run> {
        let page = self.take_listed(&self.freed, pages)?;
        // SAFETY: the list gave the run to this thread alone; a run that was in use has an entry.
        unsafe { self.layout().map.set_one(page, Entry::LARGE) };
        Some(Run { page, pages, zero: false })
    }

    /// Takes a run of `pages` out of its list.
    pub(super) fn take_listed(&self, lists: &RunLists, pages: Pages) -> Option<PageIndex> {
        // SAFETY: the page was in a list, so it has a record for good; the link is an atomic, which may be read whoever has the run by now.
        lists.take(pages, |page| unsafe { self.span(page) }.older())
    }

    /// Whether these lists are to be emptied because a part of the decay time has passed.
    pub(super) fn is_time_to_empty(&self, lists: &RunLists, now: Moment) -> bool {
        self.decay().is_some_and(|decay| lists.is_time(now, check_interval(decay)))
    }

    /// Empties the lists if it is time to.
    pub(super) fn check_freed(&self, state: &mut State, now: Moment) {
        if self.is_time_to_empty(&self.freed, now) {
            self.freed.note_look(now);
            let _ = self.empty_freed(state);
        }
    }

    /// Empties the lists: their runs are dirty. Returns how many there were.
    pub(super) fn empty_freed(&self, state: &mut State) -> Numbers {
        let new = state.runs.new_free();
        let numbers = self.free_listed(state, &self.freed);
        // They were free before.
        state.runs.set_new_free(new);
        numbers
    }

    /// Frees all runs in these lists. Returns how many there were. A thread that puts a run there later sees what this one wrote before.
    pub(super) fn free_listed(&self, state: &mut State, lists: &RunLists) -> Numbers {
        let mut numbers = [0; LENGTHS];
        for (n, first) in numbers.iter_mut().zip(lists.take_all()) {
            let mut next = first;
            while let Some(page) = next.some() {
                let record = state.runs.record(page);
                next = record.older();
                lists.subtract(record.n_pages());
                let free = FreeState::dirty(record.dirty_since(), record.is_huge.get());
                if record.kind.get() == Kind::Large {
                    state.runs.set_entries(Extent::new(page, Pages(1)), Entry::NONE);
                }
                state.runs.free(page, free);
                *n += 1;
            }
        }
        state.listed = self.freed.pages();
        numbers
    }

    /// Empties the lists, and the large-run caches of all threads.
    pub(super) fn empty_caches(&self, state: &mut State, now: Moment) {
        let _ = self.empty_freed(state);
        state.empty_caches(now);
    }

    /// Leaves dirty runs in the lists: some of `pages`, of which a block was wanted, and half as many of each length as there `were`.
    pub(super) fn fill(&self, state: &mut State, pages: Pages, were: &Numbers) {
        for (n, length) in were.iter().rev().zip((0..=LISTED_MOST.0).rev().map(Pages)) {
            let wanted = n.div_ceil(2) + if length == pages { FILLED } else { 0 };
            let _ = (0..wanted).all(|_| self.list_dirty(state, length));
        }
        state.listed = self.freed.pages();
    }

    /// Leaves a run of `pages` in its list, out of a dirty one; `false` if none is long enough, or there are enough in the lists.
    fn list_dirty(&self, state: &mut State, pages: Pages) -> bool {
        if !self.freed.make_room(pages) {
            return false;
        }
        let taken =
            state.runs.find_dirty(pages).map(|page| state.runs.take_aligned(page, pages, Pages(1), Kind::Large));
        let Some((run, _)) = taken.filter(|&(run, was)| self.open_or_give_up(state, run, was)) else {
            self.freed.subtract(pages);
            return false;
        };
        // Its record says since when it is dirty: that of the run whose first pages it is.
        let record = state.runs.record(run.first);
        record.owner.store(ptr::null_mut(), Ordering::Relaxed);
        state.runs.set_entries(Extent::new(run.first, Pages(1)), Entry::CACHED);
        self.freed.put(run.first, pages, record);
        true
    }

    /// Checks that what is in the lists is freed runs of their lengths, and their count. While no other thread uses the lists.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub(crate) fn check_listed(&self, state: &State) -> Result<(), Broken> {
        let mut counted = Pages::ZERO;
        for (pages, first) in self.freed.peek() {
            let mut next = first;
            while let Some(page) = next.some() {
                let record = state.runs.record(page);
                let is_freed = record.kind.get() == Kind::Large && state.runs.entry(page) == Entry::CACHED;
                hold(is_freed, "what is in a list of freed runs is one", page)?;
                hold(record.n_pages() == pages, "a freed run is as long as its list says", page)?;
                counted += pages;
                next = record.older();
            }
        }
        hold(counted == self.freed.pages(), "the count of freed pages is that of the lists", PageIndex::NONE)
    }

    /// Pages of all runs in the lists, as far as that can be told while threads use them.
    pub(crate) fn freed_pages(&self) -> Pages {
        self.freed.pages()
    }
}

#[cfg(test)]
mod tests;
