//! Pages that cannot be accessed: guards behind large blocks, and what is left of them in free runs.
//!
//! ```text
//!  │ block │G│ block │G│ free …       a guard is a run of its own, behind a block
//!  │ block │G│ free    G   free …     between free runs it becomes a part of one, and is still inaccessible
//!  │ free    G │G│ block │            so does one of two guards, as one is enough
//!  │ block │G│ block │G│ free …       it is a guard again when a block is placed before it
//! ```
//!
//! The record of each page says whether the page can be accessed, and that of a run's first page whether there may be pages in it that cannot.
//! Whoever takes pages into use, or a longer block, makes them accessible first; whoever inserts pages has said it in the record of their first.

use crate::page::runs::{Extent, FreeState, Runs};
use crate::span::{Kind, PageAccess, PageIndex, Span};
use freestone_base::units::Pages;

/// A guard is one page.
const ONE: Pages = Pages(1);

impl Runs {
    /// Takes the page at `page`, where a free run starts, for a guard. Returns its former state.
    pub(in crate::page) fn take_guard(&mut self, page: PageIndex) -> FreeState {
        self.take(Extent::new(page, ONE), Kind::Guard)
    }

    /// Notes how the guard at `page` was made inaccessible.
    pub(in crate::page) fn close_guard(&mut self, page: PageIndex, access: PageAccess) {
        self.set_access(page, Kind::Guard, access);
        self.record(page).has_guards.set(true);
    }

    /// Whether there is a guard at `page`, and free pages are behind it, or none that were used.
    pub(in crate::page) fn is_guard_before_room(&self, page: PageIndex) -> bool {
        let behind = page + ONE;
        let has_room = behind >= self.high_water() || self.record(behind).kind.get().is_free_and_mapped();
        self.record(page).kind.get() == Kind::Guard && has_room
    }

    /// The `N` guards with the lowest addresses; fewer if there are no more.
    pub(in crate::page) fn first_guards<const N: usize>(&self) -> [Option<PageIndex>; N] {
        let mut guards = self.iter().filter(|(_, run)| run.kind.get() == Kind::Guard).map(|(run, _)| run.first);
        core::array::from_fn(|_| guards.next())
    }

    /// Makes the guard at `page` a part of the free run behind it; a run of its own if there is none.
    pub(in crate::page) fn end_guard(&mut self, page: PageIndex) {
        let behind = self.record(page + ONE);
        let free = if behind.kind.get().is_free_and_mapped() { FreeState::of(behind) } else { FreeState::CLEAN };
        self.free_guard(page, free);
    }

    /// Makes the guards at both ends of a free run free if the pages on their other side are free, or another guard.
    pub(super) fn end_guards_beside(&mut self, run: Extent) {
        for page in [run.end(), run.first - ONE] {
            if self.record(page).kind.get() == Kind::Guard {
                if let Some(free) = self.state_between(page) {
                    self.free_guard(page, free);
                }
            }
        }
    }

    /// Gives up a page that cannot be accessed, in the run in use that starts at `run`. The rest of the run is free again.
    pub(in crate::page) fn give_up(&mut self, run: PageIndex, page: PageIndex, free: FreeState) {
        self.open_page(run, page);
        let (all, behind) = (self.end_use(run), page + ONE);
        self.insert(Extent::new(page, ONE), FreeState { kind: Kind::None, ..free });
        for part in [Extent::new(behind, all.end() - behind), Extent::new(run, page - run)] {
            if part.pages > Pages::ZERO {
                self.record(part.first).has_guards.set(true);
                self.insert(part, free);
            }
        }
    }

    /// Makes the run in use that starts at `page` a quarantined one.
    pub(in crate::page) fn quarantine(&mut self, page: PageIndex) {
        let run = self.end_use(page);
        self.label(run, Kind::Quarantined);
        self.counts.add(Kind::Quarantined, run.pages);
    }

    /// Makes the quarantined run that starts at `page`, of which no page is closed, a large block's again.
    pub(in crate::page) fn end_quarantine(&mut self, page: PageIndex) {
        let run = self.end_use(page);
        self.label(run, Kind::Large);
        self.counts.add(Kind::Large, run.pages);
    }

    fn free_guard(&mut self, page: PageIndex, free: FreeState) {
        let run = self.end_use(page);
        // Inside a longer run it must not look like a guard.
        self.record(page).kind.set(free.kind);
        self.insert(run, free);
    }

    /// The state that a guard gets if no run in use is beside it. Behind a block that leaves one page before another guard there are two: the one that is
    /// beside free pages protects nothing. `None` if it has to stay. It has no memory, so it joins a clean run rather than another.
    pub(super) fn state_between(&self, guard: PageIndex) -> Option<FreeState> {
        let is_free = |run: &Span| run.kind.get().is_free_and_mapped() || run.kind.get() == Kind::Reserved;
        // The pages beside a run start or end runs, or were never used: their records say what these are.
        let behind = self.record(guard + ONE);
        let before = self.record(self.record(guard - ONE).first_page());
        let is_guard = |run: &Span| run.kind.get() == Kind::Guard;
        let (free_before, free_behind) = (is_free(before), is_free(behind) || guard + ONE >= self.high_water());
        let goes = free_before && (free_behind || is_guard(behind)) || free_behind && is_guard(before);
        if !goes {
            return None;
        }
        let mapped = [behind, before].into_iter().filter(|run| run.kind.get().is_free_and_mapped());
        let chosen = mapped.clone().find(|run| run.kind.get() == Kind::Clean).or_else(|| mapped.clone().next());
        Some(chosen.map_or(FreeState::CLEAN, FreeState::of))
    }

    /// Whether there may be guards in what starts at `to` is what it is for what starts at `from`.
    pub(super) fn pass_on_guards(&self, from: PageIndex, to: PageIndex) {
        self.record(to).has_guards.set(self.record(from).has_guards.get());
    }

    /// The first page of `run` at or behind `from` that cannot be accessed. The run was just taken, or is free, or a guard.
    pub(in crate::page) fn next_guard(&self, run: Extent, from: PageIndex) -> Option<(PageIndex, PageAccess)> {
        let searched = if self.record(run.first).has_guards.get() { from.0..run.end().0 } else { 0..0 };
        let mut pages = searched.map(|page| (PageIndex(page), self.record(PageIndex(page)).access.get()));
        pages.find(|(_, access)| *access != PageAccess::Open)
    }

    /// How many pages of `run` can be accessed.
    pub(crate) fn n_open(&self, run: Extent) -> Pages {
        let next = |from| self.next_guard(run, from).map(|(page, _)| page);
        let guards = core::iter::successors(next(run.first), |&page| next(page + ONE));
        run.pages - Pages(guards.count() as u32)
    }

    /// Notes that all pages of `run` can be accessed.
    pub(in crate::page) fn note_open(&self, run: Extent) {
        self.record(run.first).has_guards.set(false);
    }

    /// Notes that a page in the run that starts at `run` can be accessed.
    pub(in crate::page) fn open_page(&mut self, run: PageIndex, page: PageIndex) {
        self.set_access(page, self.record(run).kind.get(), PageAccess::Open);
    }

    fn set_access(&mut self, page: PageIndex, kind: Kind, access: PageAccess) {
        let counted = |access| if access == PageAccess::Open { kind } else { Kind::Guard };
        let record = self.records.get(page);
        self.counts.subtract(counted(record.access.get()), ONE);
        self.counts.add(counted(access), ONE);
        record.access.set(access);
    }
}

#[cfg(test)]
mod tests;
