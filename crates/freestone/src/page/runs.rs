//! Runs of pages and their states. Bookkeeping only: no page is touched, and the kernel is called only for metadata.
//!
//! Long because: each change of a run touches its record, the sets and the counts together.
//!
//! ```text
//! page 0 │ 1 … high_water-1                                              │ high_water …
//! (none) │ runs in use, dirty, clean, stuck, reserved, purging, in a row │ never used
//! ```
//!
//! Invariants
//! - The runs partition the pages `1..high_water`; runs of kind `None` are given up: another part of the program has mapped something there.
//! - No two neighbours are both clean, or both dirty, or both stuck, or both reserved: they are one run.
//! - A free run is in the set of its kind (stuck runs are in that of dirty ones), and in no other list. `ages` links the dirty runs.
//! - A run of kind `Guard` is one page. Free pages are on one side of it at most: between two free runs it becomes a part of one of them, and is
//!   still inaccessible there ([`guard_pages`]).
//! - A quarantined run is in no set, and free otherwise.
//! - `purging` has the runs whose memory the kernel is taking back without the lock; they are in no set.
//! - `counts` has the pages of each kind; those that cannot be accessed count as guards, whatever run they are in.
//!
//! Only runs and records are changed here, under the page heap's lock, so all functions are safe. Which code may free or change a run in use
//! the page heap's functions state.
//!
//! | file | owns |
//! |---|---|
//! | [`records`] | records and page map entries of the pages below the high-water mark |
//! | [`metadata`] | how far records, bitmaps and page map are committed |
//! | [`extent`] | pages in a row, and their state while they are free |
//! | [`run_set`] | free runs by length |
//! | [`ages`] | dirty runs by age |
//! | [`kind_counts`] | pages of each kind |
//! | [`placement`] | where a run is taken from |
//! | [`guard_pages`] | pages that cannot be accessed |
//! | [`purging_run`] | runs whose memory the kernel is taking back |
//! | [`invariants`] | the invariants of free runs, walked |

mod ages;
mod extent;
mod guard_pages;
mod invariants;
mod kind_counts;
mod metadata;
mod placement;
mod purging_run;
mod records;
mod run_set;

use crate::span::{Entry, Kind, Layout, PageIndex, Span, SpanList};
use ages::AgeList;
pub(crate) use extent::Extent;
pub(super) use extent::FreeState;
use freestone_base::sync::Ordering;
use freestone_base::units::{Moment, Pages};
use freestone_os::{Errno, Os};
pub(crate) use invariants::Broken;
pub(super) use invariants::hold;
pub(crate) use kind_counts::KindCounts;
pub(crate) use metadata::MetadataArrays;
pub(super) use purging_run::PurgingRun;
use records::Records;
use run_set::RunSet;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Runs {
    records: Records,
    /// Dirty and stuck runs.
    dirty: RunSet,
    clean: RunSet,
    reserved: RunSet,
    ages: AgeList,
    purging: SpanList,
    counts: KindCounts,
    /// Pages of runs ahead, as last told.
    ahead: Pages,
    /// The most pages that were in use, or free with memory behind them, at once.
    peak: Pages,
    /// The most pages that were in use at once since the last `take_peak_in_use`.
    peak_in_use: Pages,
    /// Free pages with memory behind them, but for those that are new ([`Runs::new_free`]).
    old_free: Pages,
}

impl Runs {
    /// No address range yet.
    pub(super) const fn empty() -> Self {
        Self {
            records: Records::empty(),
            dirty: RunSet::empty(),
            clean: RunSet::empty(),
            reserved: RunSet::empty(),
            ages: AgeList::empty(),
            purging: SpanList::new(),
            counts: KindCounts::ZERO,
            ahead: Pages::ZERO,
            peak: Pages::ZERO,
            peak_in_use: Pages::ZERO,
            old_free: Pages::ZERO,
        }
    }

    /// Begins an address range whose first metadata is committed.
    pub(super) fn begin(&mut self, metadata: MetadataArrays) {
        self.records.begin(metadata);
    }

    /// Where pages and their metadata are.
    pub(crate) fn layout(&self) -> &Layout {
        self.records.layout()
    }

    /// The arrays of metadata.
    pub(crate) fn metadata(&self) -> &MetadataArrays {
        self.records.metadata()
    }

    /// Commits the first `bytes` of the storage for thread heaps and the like.
    ///
    /// # Errors
    /// The kernel's, or there is no more.
    pub(super) fn extend_storage<O: Os>(&mut self, os: &O, bytes: usize) -> Result<(), Errno> {
        self.records.extend_storage(os, bytes)
    }

    /// The first page that was never used.
    pub(crate) fn high_water(&self) -> PageIndex {
        self.records.high_water()
    }

    /// Puts a run in front of a list of runs.
    pub(super) fn push(&self, list: &SpanList, page: PageIndex) {
        self.records.push(list, page);
    }

    /// Takes a run out of a list of runs.
    pub(super) fn remove(&self, list: &SpanList, page: PageIndex) {
        self.records.remove(list, page);
    }

    /// The pages of each kind.
    pub(crate) fn counts(&self) -> &KindCounts {
        &self.counts
    }

    /// Tells how many pages are in runs ahead: they count as small, but not as in use.
    pub(super) fn set_ahead(&mut self, pages: Pages) {
        self.ahead = pages;
    }

    /// Pages in use.
    pub(super) fn in_use(&self) -> Pages {
        self.counts.in_use().saturating_sub(self.ahead)
    }

    /// The most pages that were in use, or free with memory behind them, at once.
    pub(super) fn peak(&self) -> Pages {
        self.peak
    }

    /// The most pages that were in use at once since the last call.
    pub(super) fn take_peak_in_use(&mut self) -> Pages {
        core::mem::replace(&mut self.peak_in_use, Pages::ZERO)
    }

    /// The record of a page; for a page that was never used, one of kind `None`.
    pub(crate) fn record(&self, page: PageIndex) -> &Span {
        self.records.get(page)
    }

    /// The page map entry of a page; for a page that was never used, [`Entry::NONE`].
    pub(crate) fn entry(&self, page: PageIndex) -> Entry {
        self.records.entry(page)
    }

    /// Sets the page map entries of `extent`.
    pub(super) fn set_entries(&self, extent: Extent, entry: Entry) {
        self.records.set_entries(extent.first, extent.pages, entry);
    }

    /// The run that starts at `page`.
    pub(in crate::page) fn run_at(&self, page: PageIndex) -> Extent {
        Extent::new(page, self.record(page).n_pages())
    }

    /// The runs, in the order of their addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Extent, &Span)> {
        let mut next = PageIndex(1);
        core::iter::from_fn(move || {
            if next >= self.high_water() || self.record(next).n_pages() == Pages::ZERO {
                return None;
            }
            let run = self.run_at(next);
            next = run.end();
            Some((run, self.record(run.first)))
        })
    }

    /// Commits metadata for the next `pages` beyond the high-water mark.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn extend_metadata<O: Os>(&mut self, os: &O, pages: Pages) -> Result<(), Errno> {
        self.records.extend(os, pages)
    }

    /// Raises the high-water mark over the next `pages`, which have metadata, and makes them a free run.
    pub(super) fn add(&mut self, pages: Pages, free: FreeState) {
        let first = self.high_water();
        self.records.raise(pages);
        self.insert(Extent::new(first, pages), free);
    }

    /// Writes the record of a run: its first and its last page.
    #[inline(never)]
    fn label(&self, run: Extent, kind: Kind) {
        for page in [run.last(), run.first] {
            let record = self.record(page);
            record.first.store(run.first.0, Ordering::Relaxed);
            record.pages.set(run.pages);
            record.kind.set(kind);
        }
    }

    /// Makes pages that are in no run a free run, joined with its neighbours of the same kind; of kind `None` they are given up.
    fn insert(&mut self, pages: Extent, free: FreeState) {
        self.counts.add(free.kind, self.n_open(pages));
        self.join(pages, free, None);
    }

    /// As [`Runs::insert`], but leaves the counts alone. `older`: the next older one of the dirty run that the pages were taken from, if they were.
    fn join(&mut self, pages: Extent, free: FreeState, older: Option<PageIndex>) {
        let FreeState { kind, since, mut is_huge } = free;
        if kind == Kind::None {
            return self.label(pages, kind);
        }
        // The age of the largest part is the age of the whole: a small young neighbour does not rejuvenate a long idle run.
        let (mut run, mut largest, mut since, mut older) = (pages, pages.pages, since, older);
        let mut has_guards = self.record(pages.first).has_guards.get();
        let mut join = |first: PageIndex, part: &Span| {
            if part.n_pages() > largest {
                (largest, since, older) = (part.n_pages(), part.dirty_since(), Some(part.older()));
            } else if older == Some(first) {
                older = Some(part.older());
            }
            is_huge |= part.is_huge.get();
            has_guards |= part.has_guards.get();
            part.n_pages()
        };
        // The page behind a run starts a run, or was never used and is of kind `None`.
        let next = self.records.get(pages.end());
        if next.kind.get() == kind {
            run.pages += join(pages.end(), next);
            self.unlink(pages.end());
        }
        // The page before a run ends a run, or is page 0, of kind `Metadata`.
        let previous = self.records.get(pages.first - Pages(1));
        if previous.kind.get() == kind {
            let first = previous.first_page();
            run = Extent::new(first, run.pages + join(first, self.records.get(first)));
            self.unlink(first);
        }
        self.label(run, kind);
        self.record(run.first).is_huge.set(is_huge);
        self.record(run.first).has_guards.set(has_guards);
        match kind {
            Kind::Clean => self.clean.insert(&self.records, run.first),
            Kind::Reserved => self.reserved.insert(&self.records, run.first),
            _ => self.dirty.insert(&self.records, run.first),
        }
        if kind == Kind::Dirty {
            self.ages.insert(&self.records, run.first, since, older);
        }
        self.end_guards_beside(run);
    }

    /// Takes a free run out of its set, and leaves the counts alone.
    fn unlink(&mut self, page: PageIndex) {
        match self.records.get(page).kind.get() {
            Kind::Clean => self.clean.remove(&self.records, page),
            Kind::Reserved => self.reserved.remove(&self.records, page),
            Kind::Dirty => {
                self.dirty.remove(&self.records, page);
                self.ages.remove(&self.records, page);
            }
            _ => self.dirty.remove(&self.records, page),
        }
    }

    /// Takes pages from the start of a free run that is long enough, for a use of `kind`; the rest stays free. Returns the run's former state.
    fn take(&mut self, pages: Extent, kind: Kind) -> FreeState {
        let record = self.record(pages.first);
        let (all, was, older) = (record.n_pages(), FreeState::of(record), record.older());
        let n_open = self.n_open(pages);
        self.unlink(pages.first);
        self.label(pages, kind);
        if all > pages.pages {
            // The other neighbour of the rest is of another kind, or it would have been one run with it.
            self.pass_on_guards(pages.first, pages.end());
            self.join(Extent::new(pages.end(), all - pages.pages), was, Some(older));
        }
        self.counts.subtract(was.kind, n_open);
        self.counts.add(kind, n_open);
        was
    }

    /// Free pages with memory behind them that have become so since the last [`Runs::set_new_free`], beyond those that were taken or purged.
    pub(super) fn new_free(&self) -> Pages {
        self.counts.free_with_memory().saturating_sub(self.old_free)
    }

    /// Says how many free pages are to count as new.
    pub(super) fn set_new_free(&mut self, pages: Pages) {
        self.old_free = self.counts.free_with_memory().saturating_sub(pages);
    }

    /// Notes how many pages are in use, once those are free again that a placement took for a moment.
    pub(super) fn note_peaks(&mut self) {
        // Free pages that were taken are not among the old ones any more.
        self.set_new_free(self.new_free());
        let in_use = self.in_use();
        self.peak = self.peak.max(in_use + self.counts.free_with_memory());
        self.peak_in_use = self.peak_in_use.max(in_use);
    }

    /// Gives pages at the start of a free run another free state.
    pub(super) fn turn(&mut self, pages: Extent, free: FreeState) {
        self.take(pages, Kind::None);
        self.free(pages.first, free);
    }

    /// Makes all runs dirty that the kernel did not take back, so that they are offered to it once more.
    pub(super) fn end_stuck(&mut self, now: Moment) {
        let mut next = PageIndex(1);
        // In most processes there are none, and no record is read.
        while self.counts.of(Kind::Stuck) > Pages::ZERO
            && next < self.high_water()
            && self.record(next).n_pages() > Pages::ZERO
        {
            let (run, record) = (self.run_at(next), self.record(next));
            next = run.end();
            if record.kind.get() == Kind::Stuck {
                // A dirty run behind it becomes a part of it.
                if self.record(next).kind.get() == Kind::Dirty {
                    next = self.run_at(next).end();
                }
                self.turn(run, FreeState::dirty(now, record.is_huge.get()));
            }
        }
    }

    /// Ends the use of a run. Its pages are in no run until they are inserted.
    fn end_use(&mut self, page: PageIndex) -> Extent {
        let run = self.run_at(page);
        self.counts.subtract(self.record(page).kind.get(), self.n_open(run));
        run
    }

    /// Makes the run in use that starts at `page` free.
    #[inline(never)]
    pub(super) fn free(&mut self, page: PageIndex, free: FreeState) {
        let run = self.end_use(page);
        self.insert(run, free);
    }

    /// Makes the run in use that starts at `page` free: the first `pages` in the state `free`, and the rest in the state `rest`.
    pub(super) fn free_in_two(&mut self, page: PageIndex, pages: Pages, free: FreeState, rest: FreeState) {
        let run = self.end_use(page);
        let first = Extent::new(page, pages);
        self.label(first, Kind::None);
        if run.pages > pages {
            self.pass_on_guards(page, first.end());
            self.insert(Extent::new(first.end(), run.pages - pages), rest);
        }
        self.insert(first, free);
    }

    /// Cuts a run in use into runs of `pages`.
    pub(super) fn split(&self, run: Extent, pages: Pages) {
        let kind = self.record(run.first).kind.get();
        let mut piece = Extent::new(run.first, pages);
        while piece.first < run.end() {
            self.label(piece, kind);
            self.record(piece.first).is_huge.set(false);
            piece.first = piece.end();
        }
    }

    /// Makes one run of runs in use of one kind, one behind the other.
    pub(super) fn unite(&self, runs: Extent) {
        self.label(runs, self.record(runs.first).kind.get());
    }

    /// Cuts the pages from `keep` on off a run in use; they are free.
    pub(super) fn shrink(&mut self, page: PageIndex, keep: Pages, rest: FreeState) {
        let kind = self.record(page).kind.get();
        let run = self.run_at(page);
        let kept = Extent::new(page, keep);
        let rest_pages = Extent::new(kept.end(), run.pages - keep);
        self.counts.subtract(kind, self.n_open(rest_pages));
        self.label(kept, kind);
        self.insert(rest_pages, rest);
    }

    /// Makes a run in use `more` pages longer, from the start of the free run behind it, which is long enough. Returns that run's former state.
    pub(super) fn extend(&mut self, page: PageIndex, more: Pages) -> FreeState {
        let (run, kind) = (self.run_at(page), self.record(page).kind.get());
        let was = self.take(Extent::new(run.end(), more), kind);
        self.label(Extent::new(page, run.pages + more), kind);
        let is_huge = &self.record(page).is_huge;
        is_huge.set(is_huge.get() | was.is_huge);
        self.note_peaks();
        was
    }

    /// The oldest dirty run.
    pub(super) fn oldest_dirty(&self) -> Option<Extent> {
        Some(self.run_at(self.ages.oldest()?))
    }

    /// The dirty runs, oldest first, and how many pages of each count as dirty: guards in them have no memory.
    pub(super) fn dirty_by_age(&self) -> impl Iterator<Item = (&Span, Pages)> {
        let dirty = self.ages.iter(&self.records);
        dirty.map(|page| (self.record(page), self.n_open(Extent::new(page, self.record(page).n_pages()))))
    }
}

#[cfg(test)]
mod tests;
