//! Placement: where a run is taken from.

use crate::page::runs::{Extent, FreeState, Runs};
use crate::span::{Kind, PageIndex};
use freestone_base::align;
use freestone_base::units::{PAGE_BYTES_LOG2, Pages};

/// The most dirty runs that are searched for one that is nearly long enough.
const MIXED_SEARCHED: usize = 8;

/// The most dirty runs, the longest, that are searched for one with pages at an aligned address.
const ALIGNED_SEARCHED: usize = 64;

/// A dirty run, and pages that are taken from the free runs before or behind it.
struct Mixed {
    dirty: Extent,
    before: Pages,
    behind: Pages,
}

impl Runs {
    /// A dirty or stuck run of at least `pages`.
    pub(in crate::page) fn find_dirty(&self, pages: Pages) -> Option<PageIndex> {
        self.dirty.find(&self.records, pages)
    }

    /// A dirty or stuck run that has `pages`, the first a multiple of `align` from address 0: of the longest runs, one of the shortest that have.
    pub(in crate::page) fn find_dirty_aligned(&self, pages: Pages, align: Pages) -> Option<PageIndex> {
        let mut found = None;
        for (page, length) in self.dirty.longest(&self.records).take(ALIGNED_SEARCHED) {
            if self.align_up(page, align) + pages <= page + length {
                found = Some(page);
            }
        }
        found
    }

    /// A dirty or stuck run out of the list with the longest.
    pub(in crate::page) fn longest_dirty(&self) -> Option<Extent> {
        self.dirty.longest(&self.records).next().map(|(page, pages)| Extent::new(page, pages))
    }

    /// A clean run of at least `pages`.
    pub(in crate::page) fn find_clean(&self, pages: Pages) -> Option<PageIndex> {
        self.clean.find(&self.records, pages)
    }

    /// A clean run of at least `pages`, with a guard behind them or `guard` pages more.
    pub(in crate::page) fn find_clean_before_guard(&self, pages: Pages, guard: Pages) -> Option<PageIndex> {
        let has_guard = |page: &PageIndex| {
            let run = self.run_at(*page);
            run.pages >= pages.saturating_add(guard) || self.record(run.end()).kind.get() == Kind::Guard
        };
        self.find_clean(pages).filter(has_guard).or_else(|| self.find_clean(pages.saturating_add(guard)))
    }

    /// A reserved run of at least `pages`.
    pub(in crate::page) fn find_reserved(&self, pages: Pages) -> Option<PageIndex> {
        self.reserved.find(&self.records, pages)
    }

    /// The first reserved run in a row of clean and reserved runs that have `pages` together; as much of it as is needed, if it ends the row. No clean run
    /// has so many.
    pub(in crate::page) fn find_gap(&self, pages: Pages) -> Option<Extent> {
        if self.counts.of(Kind::Reserved) == Pages::ZERO {
            return None;
        }
        let (mut row, mut gap) = (Pages::ZERO, None);
        self.iter().find_map(|(run, record)| {
            match record.kind.get() {
                Kind::Reserved => gap = gap.or(Some(Extent::new(run.first, run.pages.min(pages.saturating_sub(row))))),
                Kind::Clean => {}
                _ => {
                    (row, gap) = (Pages::ZERO, None);
                    return None;
                }
            }
            row += run.pages;
            gap.filter(|_| row >= pages)
        })
    }

    /// A clean run out of the list with the longest.
    pub(in crate::page) fn longest_clean(&self) -> Option<Extent> {
        self.clean.longest(&self.records).next().map(|(page, pages)| Extent::new(page, pages))
    }

    /// The first stuck run of the lists, those with the longest runs first.
    pub(in crate::page) fn long_stuck(&self) -> Option<Extent> {
        if self.counts.of(Kind::Stuck) == Pages::ZERO {
            return None;
        }
        let is_stuck = |page: &PageIndex| self.record(*page).kind.get() == Kind::Stuck;
        self.dirty.longest(&self.records).find(|(page, _)| is_stuck(page)).map(|(page, pages)| Extent::new(page, pages))
    }

    /// Pages of the large block in front of the run at `page`; 0 if there is something else.
    pub(in crate::page) fn large_before(&self, page: PageIndex) -> Pages {
        let last = self.record(page - Pages(1));
        if last.kind.get() == Kind::Large { self.record(last.first_page()).n_pages() } else { Pages::ZERO }
    }

    /// Pages of the clean run that ends at the high-water mark.
    pub(in crate::page) fn clean_tail(&self) -> Pages {
        let last = self.record(self.high_water() - Pages(1));
        if last.kind.get() == Kind::Clean { self.record(last.first_page()).n_pages() } else { Pages::ZERO }
    }

    /// Takes `pages` for a use of `kind` out of the free run at `page`, the first a multiple of `align` from address 0. The run is long enough for
    /// them. Returns the pages and their former state.
    pub(in crate::page) fn take_aligned(
        &mut self,
        page: PageIndex,
        pages: Pages,
        align: Pages,
        kind: Kind,
    ) -> (Extent, FreeState) {
        self.take_behind(Extent::new(page, Pages::ZERO), pages, align, kind)
    }

    /// As [`Runs::take_aligned`], out of what a free run has behind its `first` pages, which stay free.
    pub(in crate::page) fn take_behind(
        &mut self,
        first: Extent,
        pages: Pages,
        align: Pages,
        kind: Kind,
    ) -> (Extent, FreeState) {
        let most = self.run_at(first.first).pages;
        let taken = Extent::new(first.first, (first.pages + pages + align - Pages(1)).min(most));
        let wanted = Extent::new(self.align_up(first.end(), align), pages);
        let was = self.take(taken, kind);
        self.trim(taken, wanted, was, kind);
        self.record(wanted.first).is_huge.set(was.is_huge);
        self.note_peaks();
        (wanted, was)
    }

    /// The first page at or after `page` whose address is a multiple of `align`.
    fn align_up(&self, page: PageIndex, align: Pages) -> PageIndex {
        let address = self.layout().page_start(page).addr();
        let aligned = align::up(address, align.to_bytes().0);
        page + Pages(((aligned - address) >> PAGE_BYTES_LOG2) as u32)
    }

    /// Returns the pages taken before and after the wanted ones to their former state.
    fn trim(&mut self, taken: Extent, wanted: Extent, was: FreeState, kind: Kind) {
        if taken == wanted {
            return;
        }
        self.end_use(taken.first);
        // The wanted pages first: inserting their neighbours reads the records at their ends.
        self.label(wanted, kind);
        self.pass_on_guards(taken.first, wanted.first);
        if taken.end() > wanted.end() {
            self.pass_on_guards(taken.first, wanted.end());
        }
        if wanted.first > taken.first {
            self.insert(Extent::new(taken.first, wanted.first - taken.first), was);
        }
        if taken.end() > wanted.end() {
            self.insert(Extent::new(wanted.end(), taken.end() - wanted.end()), was);
        }
        self.counts.add(kind, self.n_open(wanted));
    }

    /// Takes `pages` for a large block out of a dirty run that is too short, by at most `lacks_most`, and the free run behind it, or before
    /// it, whatever their kind: reusing memory is worth more than a block of one kind of pages.
    pub(in crate::page) fn take_mixed(&mut self, pages: Pages, lacks_most: Pages) -> Option<Extent> {
        let Mixed { dirty, before, behind } = self.find_mixed(pages, lacks_most)?;
        let mut is_huge = self.take(dirty, Kind::Large).is_huge;
        if behind > Pages::ZERO {
            is_huge |= self.take(Extent::new(dirty.end(), behind), Kind::Large).is_huge;
        }
        if before > Pages::ZERO {
            let run = self.run_at(self.record(dirty.first - Pages(1)).first_page());
            let was = self.take(run, Kind::Large);
            is_huge |= was.is_huge;
            self.trim(run, Extent::new(dirty.first - before, before), was, Kind::Large);
        }
        let block = Extent::new(dirty.first - before, pages);
        let mut parts = [block.first, dirty.first, dirty.end()].into_iter().filter(|part| *part < block.end());
        let has_guards = parts.any(|part| self.record(part).has_guards.get());
        self.record(block.first).has_guards.set(has_guards);
        self.label(block, Kind::Large);
        self.record(block.first).is_huge.set(is_huge);
        self.note_peaks();
        Some(block)
    }

    fn find_mixed(&self, pages: Pages, lacks_most: Pages) -> Option<Mixed> {
        self.dirty.longest(&self.records).take(MIXED_SEARCHED).find_map(|(page, own)| {
            let lacks = pages.checked_sub(own).filter(|&lacks| lacks <= lacks_most)?;
            let dirty = Extent::new(page, own);
            // The neighbours' pages beside the run are ends of runs: their records say what these are.
            let is_usable = |beside: PageIndex| {
                let run = self.record(beside);
                run.kind.get().is_free_and_mapped() && run.n_pages() >= lacks
            };
            if is_usable(dirty.end()) {
                return Some(Mixed { dirty, before: Pages::ZERO, behind: lacks });
            }
            is_usable(page - Pages(1)).then_some(Mixed { dirty, before: lacks, behind: Pages::ZERO })
        })
    }
}
