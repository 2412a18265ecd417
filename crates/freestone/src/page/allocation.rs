//! Allocation: taking runs of pages.
//!
//! ```text
//!  dirty run that is long enough ─▶ emptied spans freed, lists emptied, caches emptied, and again ─▶ dirty run and pages beside it ─▶ limits kept ─▶ clean run ─▶ more clean runs
//! ```
//!
//! Dirty memory comes first: clean memory costs page faults and counts against the limits. Only for a span of which a thread may use little, clean memory does
//! ([`Prefers`]).

use crate::page::page_heap::{OwnedRun, PageHeap, StateGuard};
use crate::page::policy::growth;
use crate::page::policy::guarding::Wanted;
use crate::page::policy::large_cache_share::FILLED;
use crate::page::run_lists::{LENGTHS, Numbers};
use crate::page::runs::{Extent, FreeState};
use crate::page::state::State;
use crate::span::{Kind, PageIndex};
use freestone_base::units::{Bytes, Pages};
use freestone_os::Os;

/// A huge page of most processors, 2 MiB.
const HUGE_PAGE: Pages = Pages(32);

/// A block may consist of dirty and other pages if at most one part in this many is not dirty.
const MIXED_SHARE: u32 = 2;

/// Pages handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The first page.
    pub page: PageIndex,
    /// How many: at least as many as were requested.
    pub pages: Pages,
    /// Whether all of it reads as zero.
    pub zero: bool,
}

impl Run {
    fn new(pages: Extent, zero: bool) -> Self {
        Self { page: pages.first, pages: pages.pages, zero }
    }
}

/// Which memory a run is taken from if there is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefers {
    /// Dirty memory: what will be written whole needs no page fault then.
    Dirty,
    /// Clean memory: of a run that will be used in part, the rest stays without memory.
    Clean,
}

/// A request for pages.
#[derive(Clone, Copy)]
struct Request {
    pages: Pages,
    /// They are cut into runs of so many.
    piece: Pages,
    kind: Kind,
    /// The first page is a multiple of this many, from address 0.
    align: Pages,
    /// At least this many pages are free in a row from the first page on.
    room: Pages,
    /// Whether huge pages are requested.
    is_huge: bool,
}

impl Request {
    /// The length of a free run that is long enough wherever it is aligned; `None` beyond the largest number.
    fn searched(&self) -> Option<Pages> {
        self.room.0.checked_add(self.align.0 - 1).map(Pages)
    }

    /// Whether it is for a block that grows, which is to have room.
    fn grows(&self) -> bool {
        self.room > self.pages
    }

    /// The pages of a free run that stay free before a block that grows: the room of a large block of `before` pages in front of the run, as far as there is enough for both.
    fn left_before(&self, run: Extent, before: Pages) -> Extent {
        Extent::new(run.first, run.pages.saturating_sub(self.room).min(growth::room_behind(before)))
    }

    /// Whether a guard belongs behind new memory. Before room to grow into it would be lost soon. Blocks with huge pages end where the next one
    /// starts: a guard between them would keep free ones apart by the rest of a huge page. Who aligns a block to a huge page may request one for all of it: the kernel
    /// gives none where there is a guard, so that it has one only if all are wanted.
    fn has_guard(&self, wanted: Wanted) -> bool {
        !self.grows() && !self.is_huge && (self.align < HUGE_PAGE || wanted != Wanted::WhereCheap)
    }
}

impl<O: Os> PageHeap<O> {
    /// Allocates `wanted` pages in a row for `kind`, the first a multiple of `align` (a power of two) from address 0. `None` when memory or the
    /// address range runs out, or the hard limit is reached.
    pub(crate) fn allocate(&self, wanted: Pages, align: Pages, kind: Kind) -> Option<Run> {
        self.allocate_more(wanted, align, kind, 0, Prefers::Dirty)
    }

    /// As [`PageHeap::allocate`], for a large block that found no run in its list: if it takes a dirty one, leaves others in the lists.
    pub(crate) fn allocate_listed(&self, wanted: Pages) -> Option<Run> {
        self.allocate_more(wanted, Pages(1), Kind::Large, FILLED, Prefers::Dirty)
    }

    /// As [`PageHeap::allocate`], but takes up to `more` runs of this length besides. Small: if they are clean, and in one row, which is no longer than the longest clean run; then the result has as many
    /// pages as the row, and all runs but the first are ahead. Large: if they are dirty; they are left in the lists. Where clean pages are preferred, dirty
    /// ones are taken only if no clean ones can be had.
    pub(super) fn allocate_more(
        &self,
        wanted: Pages,
        align: Pages,
        kind: Kind,
        more: u32,
        prefers: Prefers,
    ) -> Option<Run> {
        self.open()?;
        if !self.could_hold(wanted, align) {
            return None;
        }
        loop {
            let mut given_up = 0;
            let run = self.attempt(wanted, align, kind, more, prefers, &mut given_up);
            if run.is_some() || self.state.lock().guarding.n_given_up() == given_up {
                return run;
            }
        }
    }

    /// As [`PageHeap::allocate_more`]. If it fails for a guard that the kernel does not make accessible, that page is given up, and more are than `given_up` says, which were given up before.
    ///
    /// Wide because: it is [`PageHeap::allocate_more`], and what that is told besides.
    fn attempt(
        &self,
        wanted: Pages,
        align: Pages,
        kind: Kind,
        more: u32,
        prefers: Prefers,
        given_up: &mut u32,
    ) -> Option<Run> {
        let plan = (kind == Kind::Large).then(|| self.huge_plan(wanted));
        let huge = plan.and_then(|plan| plan.huge);
        let pages = plan.map_or(wanted, |plan| plan.pages);
        let request = Request { pages, piece: pages, kind, align, room: pages, is_huge: huge.is_some() };
        let mut state = if prefers == Prefers::Dirty { self.lock_beside_emptied() } else { self.lock() };
        *given_up = state.guarding.n_given_up();
        let mut were = [0; LENGTHS];
        let dirty = if prefers == Prefers::Dirty { self.find_dirty(&mut state, &request, &mut were) } else { None };
        if let Some(page) = dirty {
            self.note_reuse(&mut state, kind);
            let run = self.take(&mut state, page, request);
            if kind == Kind::Small {
                self.bound_emptied(&state);
            }
            if kind == Kind::Large && more > 0 {
                self.fill(&mut state, wanted, &were);
            }
            return run;
        }
        let most_clean = Pages(pages.0 / MIXED_SHARE);
        if kind == Kind::Large && align == Pages(1) && !self.is_short(&state, most_clean) {
            if let Some(block) = state.runs.take_mixed(pages, most_clean) {
                return self.begin_mixed(state, block, huge.is_some());
            }
        }
        if kind == Kind::Large && more > 0 {
            self.fill(&mut state, wanted, &were);
        }
        if kind == Kind::Small && more > 0 && self.settings.limit_hard_bytes().is_none() {
            let row = row_of(&state, wanted, more + 1);
            // First: what comes into use is counted when the row is taken.
            self.ahead.add(row - wanted);
            if let Some(run) = self.take_clean(state, Request { pages: row, room: row, ..request }) {
                return Some(run);
            }
            self.ahead.subtract(row - wanted);
            state = self.lock();
        }
        let run = self.take_clean(state, Request { align: align.max(huge.unwrap_or(align)), ..request });
        // Up to the end of its last huge page the block may pass a limit that it keeps by itself.
        let exact = Request { pages: wanted, piece: wanted, room: wanted, ..request };
        let run = run.or_else(|| if wanted < pages { self.take_clean(self.lock(), exact) } else { None });
        if run.is_none() && prefers == Prefers::Clean {
            self.allocate_more(wanted, align, kind, 0, Prefers::Dirty)
        } else {
            run
        }
    }

    /// Allocates pages for a block that holds `held`, grows to `size`, and is going to grow further: with several times as much address space, itself
    /// included, free behind it. `None` if there is no such stretch, or if the block grows steeply: room for all of those would scatter them, and what they leave would be too short for the next.
    pub(crate) fn allocate_with_growth_room(&self, held: Bytes, size: Bytes) -> Option<Run> {
        self.open()?;
        let pages = size.to_pages().filter(|_| !growth::prefers_dirty(held, size))?;
        let room = growth::with_growth_room(pages).filter(|room| self.could_hold(*room, Pages(1)))?;
        let request = Request { pages, piece: pages, kind: Kind::Large, align: Pages(1), room, is_huge: false };
        let mut state = self.lock();
        // The longest: how long the block becomes is not known.
        let least = growth::with_dirty_growth_room(pages);
        let longest = |state: &State| state.runs.longest_dirty().filter(|run| run.pages >= least);
        if let Some(dirty) = self.look_for_dirty(&mut state, longest) {
            self.note_reuse(&mut state, Kind::Large);
            return self.take(&mut state, dirty.first, request);
        }
        // Memory that stays when it is freed is to be used again, room or not.
        if state.runs.counts().of(Kind::Stuck) > state.in_use() {
            return None;
        }
        let huge = self.huge_page_for(room);
        self.take_clean(state, Request { align: huge.unwrap_or(Pages(1)), is_huge: huge.is_some(), ..request })
    }

    /// What `look` finds among the dirty runs; if that is nothing, empties the lists and looks again.
    pub(super) fn look_for_dirty<T>(&self, state: &mut State, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        look(state).or_else(|| {
            let _ = self.empty_freed(state);
            look(state)
        })
    }

    /// A dirty run that has room for the request wherever it starts; if there is none, frees emptied spans, then empties the lists, and then the caches, whose runs are
    /// dirty then, and looks again. In the end one that has room where it starts. `were` is how many runs were in the lists.
    fn find_dirty(&self, state: &mut State, request: &Request, were: &mut Numbers) -> Option<PageIndex> {
        let searched = request.searched()?;
        for step in 0..4 {
            let dirty = state.runs.find_dirty(searched);
            if dirty.is_some() {
                return dirty;
            }
            match step {
                0 => self.free_emptied(state),
                1 => *were = self.empty_freed(state),
                2 if state.cached_pages() > Pages::ZERO => state.empty_caches(self.now()),
                _ => break,
            }
        }
        if request.align > Pages(1) { state.runs.find_dirty_aligned(request.pages, request.align) } else { None }
    }

    /// Takes the request out of the dirty or clean run at `page`, which is long enough; `None` if the kernel does not make guards in it
    /// accessible.
    fn take(&self, state: &mut State, page: PageIndex, request: Request) -> Option<Run> {
        if request.kind != Kind::Large {
            self.end_huge(state, page);
        }
        state.runs.set_ahead(self.ahead.pages());
        let left = if request.grows() {
            request.left_before(state.runs.run_at(page), state.runs.large_before(page))
        } else {
            Extent::new(page, Pages::ZERO)
        };
        let (pages, was) = state.runs.take_behind(left, request.pages, request.align, request.kind);
        if !self.open_or_give_up(state, pages, was) {
            return None;
        }
        if request.piece < pages.pages {
            state.runs.split(pages, request.piece);
        }
        self.note_in_use(state);
        let is_clean = was.kind == Kind::Clean;
        if request.kind == Kind::Large {
            state.begin_large(pages.first);
        }
        self.guard_behind(state, request.kind, pages, is_clean && request.has_guard(self.guards_wanted(request.kind)));
        Some(Run::new(pages, is_clean))
    }

    /// Notes in the churn policy that a run of a kind takes dirty memory.
    fn note_reuse(&self, state: &mut State, kind: Kind) {
        state.churn.note_reuse(kind == Kind::Large, || self.now());
    }

    /// Makes a large block of a dirty run and pages beside it that were just taken; `None` as for [`PageHeap::take`].
    fn begin_mixed(&self, mut state: StateGuard<'_>, block: Extent, is_huge: bool) -> Option<Run> {
        let dirty = FreeState::dirty(self.now(), state.runs.record(block.first).is_huge.get());
        if !self.open_or_give_up(&mut state, block, dirty) {
            return None;
        }
        self.note_in_use(&mut state);
        state.begin_large(block.first);
        self.guard_behind(&mut state, Kind::Large, block, false);
        self.note_reuse(&mut state, Kind::Large);
        drop(if state.churn.has_begun() { self.purge_in_exchange(state, block.pages) } else { state });
        if is_huge {
            self.ask_for_huge_pages(&OwnedRun::taken(block), Pages::ZERO);
        }
        Some(Run::new(block, false))
    }

    /// Takes clean pages, once they are within the limits.
    fn take_clean(&self, state: StateGuard<'_>, request: Request) -> Option<Run> {
        let mut state = self.keep_limits(state, request.pages)?;
        let searched = request.searched()?;
        let has_guard = request.has_guard(self.guards_wanted(request.kind));
        let guard = if has_guard { self.guard_room(&state, request.kind, request.pages) } else { Pages::ZERO };
        let page = match state.runs.find_clean_before_guard(searched, guard) {
            Some(page) => {
                let is_large = request.kind == Kind::Large;
                state.churn.note_fresh(request.pages, is_large, self.decay(), || self.now());
                page
            }
            None => {
                let with_guard = searched.saturating_add(guard);
                let made = self.make_clean(&mut state, with_guard).or_else(|| self.make_clean(&mut state, searched));
                if made.is_none() {
                    self.clean_of_closed(&mut state, searched)?;
                }
                state.runs.find_clean(with_guard).or_else(|| state.runs.find_clean(searched))?
            }
        };
        let run = self.take(&mut state, page, request)?;
        state.events.fresh_bytes += request.pages.to_bytes().0 as u64;
        drop(if request.kind == Kind::Large { self.purge_in_exchange(state, request.pages) } else { state });
        if request.is_huge {
            let block = OwnedRun::taken(Extent::new(run.page, request.pages));
            self.ask_for_huge_pages(&block, Pages::ZERO);
        }
        Some(run)
    }
}

/// The length of a row of up to `n` runs of `wanted` pages: no longer than what is clean, if a run has room there. Else what lies between spans that stay would stay
/// clean, and the high-water mark would rise.
fn row_of(state: &State, wanted: Pages, n: u32) -> Pages {
    let longest = state.runs.longest_clean().map_or(Pages::ZERO, |run| run.pages);
    let mut row = Pages(wanted.0 * n);
    while row > longest && longest >= wanted {
        row -= wanted;
    }
    row
}

#[cfg(test)]
mod tests;
