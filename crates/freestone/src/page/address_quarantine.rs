//! The quarantine of addresses: at the level `full` a freed large block has no memory any more, but no other block gets its addresses for a while,
//! and every access to them faults.
//!
//! ```text
//!  in use ── freed: purged, closed ──▶ quarantined ── the oldest, when there are too many ──▶ opened: clean
//!                                                  └─ all, when address space is short ─────▶
//! ```
//!
//! The kernel closes a block without the lock. Meanwhile it counts as memory that the kernel is taking back. A forked child that does not have the thread
//! that was closing it cannot know whether it is closed, or how: there the run stays quarantined for good.
//!
//! A quarantined run is not in use, counts against no limit, and is in no set of free runs. Its page map entry is [`Entry::CACHED`], so that a second
//! free of it is seen. How many runs there are decides `policy::held_back`. If the kernel does not close a block, it is freed as at other levels.

use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::guarding::Wanted;
use crate::page::policy::held_back::{Held, HeldBack};
use crate::page::runs::{Extent, FreeState, PurgingRun};
use crate::page::state::State;
use crate::span::{Entry, Kind};
use freestone_base::units::Pages;
use freestone_os::{GuardBy, Os};

impl<O: Os> PageHeap<O> {
    /// Frees a large block, whose memory is used no more, and holds its addresses back.
    ///
    /// # Errors
    /// The block, which is as before but for its contents: at other levels than `full`, if it is too long to be held back, or if the kernel
    /// refuses.
    pub(crate) fn quarantine(&self, block: OwnedRun) -> Result<(), OwnedRun> {
        let wanted = self.guards_wanted(Kind::Large);
        if !matches!(wanted, Wanted::Always | Wanted::WithMarkers) {
            return Err(block);
        }
        let Some((run, first)) = self.begin_close(&block, wanted) else { return Err(block) };
        let (mut choice, mut n_tried) = (Some(first), 0);
        while let Some(by) = choice.filter(|_| n_tried < 2) {
            match self.close_run(&run, by) {
                Ok(()) => {
                    self.hold_back(run, by);
                    return Ok(());
                }
                Err(errno) => {
                    let mut state = self.lock();
                    state.guarding.note_refusal(by, errno);
                    (choice, n_tried) = (state.guarding.choose(wanted, run.extent().pages, true), n_tried + 1);
                }
            }
        }
        let mut state = self.lock();
        state.runs.cancel_close(run);
        self.tell_waiting(&state);
        Err(block)
    }

    /// Takes a block out of use to close it, if it may be held back. Returns how it is to be closed.
    fn begin_close(&self, block: &OwnedRun, wanted: Wanted) -> Option<(PurgingRun, GuardBy)> {
        let pages = self.extent(block).pages;
        let mut state = self.lock();
        let by =
            HeldBack::takes(pages, state.in_use()).then(|| state.guarding.choose(wanted, pages, true)).flatten()?;
        state.unlist_large(block.page());
        Some((state.runs.begin_close(block.page()), by))
    }

    /// Makes the run of a block that was closed a quarantined one; those that came first leave if there is no room.
    fn hold_back(&self, run: PurgingRun, by: GuardBy) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let (page, pages) = (run.extent().first, run.extent().pages);
        state.held_back.provide(|| self.held_ring(&mut state.runs, &mut state.storage));
        state.end_close(run);
        state.guarding.count(by);
        while !state.held_back.has_room(pages, state.in_use()) && self.let_go(state) {}
        let held = Held { page, by };
        if state.held_back.has_room(pages, state.in_use()) || !self.open_quarantined(state, held) {
            state.held_back.push(held, pages);
        }
        self.tell_waiting(state);
    }

    /// Frees the run that was quarantined first; `false` if there is none, or the kernel does not make it accessible.
    fn let_go(&self, state: &mut State) -> bool {
        let Some(oldest) = state.held_back.oldest() else { return false };
        let pages = state.runs.run_at(oldest.page).pages;
        let is_open = self.open_quarantined(state, oldest);
        if is_open {
            state.held_back.drop_oldest(pages);
        }
        is_open
    }

    /// Makes a quarantined run accessible and free; `false` if the kernel refuses.
    fn open_quarantined(&self, state: &mut State, held: Held) -> bool {
        let run = state.runs.run_at(held.page);
        let is_open = self.open_again(run, held.by);
        if is_open {
            state.guarding.discount(held.by);
            state.runs.set_entries(Extent::new(run.first, Pages(1)), Entry::NONE);
            let is_huge = state.runs.record(run.first).is_huge.get();
            state.runs.free(run.first, FreeState { is_huge, ..FreeState::CLEAN });
        }
        is_open
    }

    /// Frees quarantined runs, and then guards, because address space is short, until there is a clean run of at least `pages`. `None` if there is
    /// none then.
    pub(super) fn clean_of_closed(&self, state: &mut State, pages: Pages) -> Option<()> {
        while state.runs.find_clean(pages).is_none() {
            if !self.let_go(state) && self.make_clean(state, pages).is_none() {
                self.end_guards(state)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
