//! The quarantine of addresses: at the level `full` a freed large block has no memory any more, but no other block gets its addresses for a while,
//! and every access to them faults.
//!
//! ```text
//!  in use ── freed: purged, closed ──▶ quarantined ── the oldest, when there are too many ──▶ opened: clean
//!                                                  └─ all, when address space is short ─────▶
//! ```
//!
//! The kernel closes a block without the lock. Its run is quarantined from the start, and counts as memory that the kernel is taking back until it is closed. A forked
//! child that does not have the thread that was closing it cannot know whether it is closed, or how: there the run stays quarantined for good.
//!
//! A quarantined run is not in use, counts against no limit, and is in no set of free runs. Its page map entry is [`Entry::CACHED`], so that a second
//! free of it is seen. How many runs there are decides `policy::held_back`. If the kernel does not close a block, it is freed as at other levels.

use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::guarding::Wanted;
use crate::page::policy::held_back::{Held, HeldBack};
use crate::page::runs::{Extent, FreeState};
use crate::page::state::State;
use crate::span::{Entry, Kind};
use freestone_base::units::Pages;
use freestone_os::{GuardBy, Inside, Os};

/// How a block is to be closed; `None` if it cannot be.
fn choose(state: &State, run: Extent, wanted: Wanted) -> Option<GuardBy> {
    state.guarding.choose(wanted, run.pages, true)
}

/// Takes a large block out of use, to close it.
fn begin_close(state: &mut State, run: Extent) {
    state.end_large(run.first);
    state.runs.set_entries(Extent::new(run.first, Pages(1)), Entry::CACHED);
    state.runs.quarantine(run.first);
    state.closing += run.pages;
}

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
        let run = self.extent(&block);
        let mut state = self.lock();
        let takes = HeldBack::takes(run.pages, state.in_use());
        let mut choice = if takes { choose(&state, run, wanted) } else { None };
        // First: what cannot be opened again is closed no more than there is room for.
        if choice.is_none() || !self.make_room(&mut state, run.pages) {
            return Err(block);
        }
        // In the child of a signal handler's fork the block is still this thread's to close.
        let _inside = Inside::begin();
        begin_close(&mut state, run);
        for _ in 0..2 {
            let Some(by) = choice else { break };
            drop(state);
            let closed = self.close_block(&block, by);
            state = self.lock();
            match closed {
                Ok(()) => {
                    self.hold_back(&mut state, run, by);
                    self.end_close(&mut state, run);
                    return Ok(());
                }
                Err(errno) => state.guarding.note_refusal(by, errno),
            }
            choice = choose(&state, run, wanted);
        }
        state.runs.end_quarantine(run.first);
        state.restore_large(run.first);
        self.end_close(&mut state, run);
        Err(block)
    }

    /// Makes room for a block of `pages` among those that are held back: those that came first leave. `false` if there is none, because the kernel opens none.
    fn make_room(&self, state: &mut State, pages: Pages) -> bool {
        state.held_back.provide(|| self.held_ring(&mut state.runs, &mut state.storage));
        loop {
            let has_room = state.held_back.has_room(pages, state.in_use());
            if has_room || !self.let_go(state) {
                return has_room;
            }
        }
    }

    /// Makes the quarantined run of a block that is closed now one of those that are held back. If others took the room meanwhile, it is opened; it stays
    /// closed for good if that fails, too, and there is no place for it.
    fn hold_back(&self, state: &mut State, run: Extent, by: GuardBy) {
        state.guarding.count(by);
        let held = Held { page: run.first, by };
        if self.make_room(state, run.pages) || !self.open_quarantined(state, held) {
            state.held_back.push(held, run.pages);
        }
    }

    /// Notes that a block is being closed no more.
    fn end_close(&self, state: &mut State, run: Extent) {
        state.closing -= run.pages;
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
