//! What the page heap's lock protects: free runs, the frontier, the counts.
#![allow(unsafe_code)]
//!
//! ```text
//! page 0 │ 1 … frontier-1                                                │ frontier …
//! (none) │ runs in use, dirty, clean, stuck, reserved, purging, in a row │ never used
//! ```
//!
//! Invariants
//! - The runs partition `1..frontier`, except where another mapping was in the way (kind `None`).
//! - No two neighbours are both clean, or both dirty, or both stuck, or both reserved: they are one run.
//! - `ages` links the dirty runs, oldest first.
//! - `purging` has the runs whose memory is being given back without the lock; they are in no set.
//! - `stats` counts the pages of each kind.
//!
//! # Safety
//! Everything here runs under the page heap's lock, which owns the records of all free runs and of those it is given.

use crate::page::huge::DENSE;
use crate::page::purge::Churn;
use crate::page::run_set::RunSet;
use crate::page::shelf::Shelf;
use crate::page::window::Committed;
use crate::span::{Kind, Layout, Span, SpanList};
use freestone_base::sync::Ordering;

/// Pages of each kind, and what was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageStats {
    /// Pages in small spans.
    pub small_pages: u64,
    /// Pages in large blocks.
    pub large_pages: u64,
    /// Pages in which thread heaps and the like are.
    pub metadata_pages: u64,
    /// Free pages with memory behind them that can be given back.
    pub dirty_pages: u64,
    /// Free pages that the kernel would not take back, or takes when it needs them.
    pub stuck_pages: u64,
    /// Free pages that the kernel is taking back.
    pub purging_pages: u64,
    /// Free pages without memory.
    pub clean_pages: u64,
    /// Free pages that are not mapped.
    pub reserved_pages: u64,
    /// Pages that somebody else has mapped.
    pub foreign_pages: u64,
    /// Bytes given back to the operating system, ever.
    pub purged_bytes: u64,
    /// Calls that gave memory back, ever.
    pub n_purges: u64,
    /// Large blocks allocated, ever.
    pub large_allocs: u64,
    /// Large blocks freed, ever.
    pub large_frees: u64,
    /// The most pages that were in use or dirty at once.
    pub peak_pages: u64,
    /// Bytes handed out without memory behind them, ever: a page fault for each OS page of them that is written.
    pub fresh_bytes: u64,
}

impl PageStats {
    /// Pages that nobody uses and that may have memory behind them.
    #[must_use]
    pub fn free_with_memory(&self) -> u64 {
        self.dirty_pages + self.stuck_pages + self.purging_pages
    }
}

/// What is known of free pages.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// Clean, dirty, stuck or reserved; or `None`: not ours any more.
    pub kind: Kind,
    /// Dirty: since when, in ms of the kernel's clock.
    pub since_ms: u32,
    /// Whether huge pages were asked for, somewhere in them.
    pub is_huge: bool,
}

impl Free {
    /// As the kernel gave them.
    pub const CLEAN: Self = Self { kind: Kind::Clean, since_ms: 0, is_huge: false };

    /// Just out of use.
    #[must_use]
    pub fn dirty(now_ms: u32, is_huge: bool) -> Self {
        Self { kind: Kind::Dirty, since_ms: now_ms, is_huge }
    }

    /// As the record of a free run says.
    #[must_use]
    pub fn of(record: &Span) -> Self {
        Self { kind: record.kind.get(), since_ms: record.dirty_since_ms.get(), is_huge: record.is_huge.get() }
    }
}

/// See the module header.
#[derive(Debug)]
pub struct State {
    /// First page never committed.
    pub frontier: u32,
    /// How far records, bitmaps and page map are committed: for all pages below the frontier.
    pub committed: Committed,
    /// Dirty and stuck runs.
    pub dirty: RunSet,
    /// Clean runs.
    pub clean: RunSet,
    /// Reserved runs.
    pub reserved: RunSet,
    /// Oldest dirty run, or 0.
    pub oldest: u32,
    /// Youngest dirty run, or 0.
    pub youngest: u32,
    /// Pages of each kind.
    pub stats: PageStats,
    /// How densely large blocks were written lately, in parts of `DENSE`.
    pub density: u32,
    /// First page of the large block allocated last, if nobody has looked at it since; or 0.
    pub last_large: u32,
    /// See [`Churn`].
    pub churn: Churn,
    /// Runs taken out to be purged, and not back yet.
    pub purging: SpanList,
    /// Threads that wait until such a run is back.
    pub n_waiting: u32,
    /// The first of the shelves with an open slot, or null.
    pub shelves: *const Shelf,
    /// Pages of all open slots.
    pub shelf_pages: u64,
    /// When the shelves were last looked at.
    pub looked_ms: u32,
    /// Pages in use at which the soft limit is next called passed.
    pub press_at_pages: u64,
    /// Where the next piece of metadata is cut, and how much is left there.
    pub metadata: (*mut u8, usize),
}

// SAFETY: the pointers are to metadata that the state owns, and to shelves, which any thread may look at under the lock.
unsafe impl Send for State {}

impl State {
    /// Nothing committed.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            frontier: 1,
            committed: Committed::NONE,
            dirty: RunSet::empty(),
            clean: RunSet::empty(),
            reserved: RunSet::empty(),
            oldest: 0,
            youngest: 0,
            stats: PageStats {
                small_pages: 0,
                large_pages: 0,
                metadata_pages: 0,
                dirty_pages: 0,
                stuck_pages: 0,
                purging_pages: 0,
                clean_pages: 0,
                reserved_pages: 0,
                foreign_pages: 0,
                purged_bytes: 0,
                n_purges: 0,
                large_allocs: 0,
                large_frees: 0,
                peak_pages: 0,
                fresh_bytes: 0,
            },
            density: DENSE,
            last_large: 0,
            churn: Churn::NONE,
            purging: SpanList::new(),
            n_waiting: 0,
            shelves: core::ptr::null(),
            shelf_pages: 0,
            looked_ms: 0,
            press_at_pages: 0,
            metadata: (core::ptr::null_mut(), 0),
        }
    }

    /// Pages of a kind, to count up or down.
    fn count(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Small => &mut self.stats.small_pages,
            Kind::Large => &mut self.stats.large_pages,
            Kind::Metadata => &mut self.stats.metadata_pages,
            Kind::Dirty => &mut self.stats.dirty_pages,
            Kind::Stuck => &mut self.stats.stuck_pages,
            Kind::Purging => &mut self.stats.purging_pages,
            Kind::Clean => &mut self.stats.clean_pages,
            Kind::Reserved => &mut self.stats.reserved_pages,
            Kind::None => &mut self.stats.foreign_pages,
        }
    }

    /// Pages in spans, large blocks and thread heaps.
    pub(super) fn in_use_pages(&self) -> u64 {
        self.stats.small_pages + self.stats.large_pages + self.stats.metadata_pages
    }

    /// Pages that nobody uses and that may have memory behind them.
    pub(super) fn free_with_memory(&self) -> u64 {
        self.stats.free_with_memory()
    }

    /// Writes the record of a run: its first and its last page.
    ///
    /// # Safety
    /// - See the module header; the run's records are committed.
    pub unsafe fn label(&mut self, layout: &Layout, page: u32, n_pages: u32, kind: Kind) {
        // SAFETY: the caller's promise.
        unsafe {
            for at in [page + n_pages - 1, page] {
                let record = &*layout.record(at);
                record.first.store(page, Ordering::Relaxed);
                record.pages.set(n_pages);
                record.kind.set(kind);
            }
        }
    }

    /// Puts a run that nobody uses among the free ones, joined with its neighbours of the same kind; of kind `None` it is given up.
    ///
    /// # Safety
    /// - See the module header; the run is in no set.
    pub unsafe fn insert(&mut self, layout: &Layout, page: u32, n_pages: u32, free: Free) {
        let Free { kind, since_ms, mut is_huge } = free;
        *self.count(kind) += u64::from(n_pages);
        if kind == Kind::None {
            // SAFETY: the caller's promise.
            return unsafe { self.label(layout, page, n_pages, kind) };
        }
        let (mut page, mut n_pages) = (page, n_pages);
        // The age of the largest part is the age of the whole: a long idle run does not get young by a small neighbour.
        let (mut largest, mut since_ms) = (n_pages, since_ms);
        let mut join = |part: &Span| {
            if part.pages.get() > largest {
                (largest, since_ms) = (part.pages.get(), part.dirty_since_ms.get());
            }
            is_huge |= part.is_huge.get();
            part.pages.get()
        };
        // SAFETY: the neighbours of a run's ends are ends of runs, or page 0, or at the frontier.
        unsafe {
            if page + n_pages < self.frontier && (*layout.record(page + n_pages)).kind.get() == kind {
                let next = page + n_pages;
                n_pages += join(&*layout.record(next));
                self.unlink(layout, next);
            }
            if (*layout.record(page - 1)).kind.get() == kind {
                let previous = (*layout.record(page - 1)).first.load(Ordering::Relaxed);
                n_pages += join(&*layout.record(previous));
                page = previous;
                self.unlink(layout, previous);
            }
            self.label(layout, page, n_pages, kind);
            (*layout.record(page)).is_huge.set(is_huge);
            match kind {
                Kind::Clean => self.clean.insert(layout, page),
                Kind::Reserved => self.reserved.insert(layout, page),
                _ => self.dirty.insert(layout, page),
            }
            if kind == Kind::Dirty {
                self.enter_by_age(layout, page, since_ms);
            }
        }
    }

    /// Takes a free run out of its set, and leaves the counts alone.
    unsafe fn unlink(&mut self, layout: &Layout, page: u32) {
        // SAFETY: the caller's run is in the set of its kind.
        unsafe {
            match (*layout.record(page)).kind.get() {
                Kind::Clean => self.clean.remove(layout, page),
                Kind::Reserved => self.reserved.remove(layout, page),
                Kind::Dirty => {
                    self.dirty.remove(layout, page);
                    self.forget_age(layout, page);
                }
                _ => self.dirty.remove(layout, page),
            }
        }
    }

    /// Makes the first `n_pages` of a free run free in another way.
    ///
    /// # Safety
    /// - See the module header; `page` starts a free run of at least `n_pages`, and what is said of it is true.
    pub unsafe fn turn(&mut self, layout: &Layout, page: u32, n_pages: u32, now: Free) {
        // SAFETY: the caller's promise.
        unsafe {
            self.take(layout, page, n_pages, Kind::None);
            self.end_use(layout, page);
            self.insert(layout, page, n_pages, now);
        }
    }

    /// Takes `n_pages` of the free run at `page`, from its start, for a use of `kind`; the rest stays free.
    ///
    /// # Safety
    /// - See the module header; `page` starts a free run of at least `n_pages`.
    pub unsafe fn take(&mut self, layout: &Layout, page: u32, n_pages: u32, kind: Kind) {
        // SAFETY: the caller's promise.
        unsafe {
            let record = &*layout.record(page);
            let (all, was) = (record.pages.get(), Free::of(record));
            self.unlink(layout, page);
            *self.count(was.kind) -= u64::from(all);
            self.label(layout, page, n_pages, kind);
            if all > n_pages {
                // Its other neighbour is of another kind, or it would have been one run with it.
                self.insert(layout, page + n_pages, all - n_pages, was);
            }
        }
        *self.count(kind) += u64::from(n_pages);
        let in_use = self.in_use_pages();
        self.stats.peak_pages = self.stats.peak_pages.max(in_use + self.free_with_memory());
        self.note_peak(in_use);
    }

    /// Ends a use: the pages are nobody's until inserted.
    ///
    /// # Safety
    /// - See the module header; `page` starts a run in use.
    pub unsafe fn end_use(&mut self, layout: &Layout, page: u32) -> u32 {
        // SAFETY: the caller's promise.
        let record = unsafe { &*layout.record(page) };
        let n_pages = record.pages.get();
        *self.count(record.kind.get()) -= u64::from(n_pages);
        n_pages
    }

    /// Counts pages as used for `kind`.
    pub fn begin_use(&mut self, kind: Kind, n_pages: u32) {
        *self.count(kind) += u64::from(n_pages);
    }

    /// Moves the frontier over pages that somebody else has mapped.
    ///
    /// # Safety
    /// - See the module header; the records of these pages and of the next are committed.
    pub unsafe fn skip(&mut self, layout: &Layout, n_pages: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.insert(layout, self.frontier, n_pages, Free { kind: Kind::None, ..Free::CLEAN }) };
        self.frontier += n_pages;
    }

    /// Links a dirty run where its age belongs. Nearly always that is at the young end.
    unsafe fn enter_by_age(&mut self, layout: &Layout, page: u32, since_ms: u32) {
        // SAFETY: dirty runs' records are ours.
        unsafe {
            let record = |page: u32| &*layout.record(page);
            let mut older = self.youngest;
            while older != 0 && (record(older).dirty_since_ms.get().wrapping_sub(since_ms) as i32) > 0 {
                older = record(older).older.get();
            }
            let younger = if older == 0 { self.oldest } else { record(older).younger.get() };
            let this = record(page);
            this.dirty_since_ms.set(since_ms);
            this.older.set(older);
            this.younger.set(younger);
            match older {
                0 => self.oldest = page,
                older => record(older).younger.set(page),
            }
            match younger {
                0 => self.youngest = page,
                younger => record(younger).older.set(page),
            }
        }
    }

    unsafe fn forget_age(&mut self, layout: &Layout, page: u32) {
        // SAFETY: as above.
        unsafe {
            let record = &*layout.record(page);
            let (older, younger) = (record.older.get(), record.younger.get());
            match older {
                0 => self.oldest = younger,
                older => (*layout.record(older)).younger.set(younger),
            }
            match younger {
                0 => self.youngest = older,
                younger => (*layout.record(younger)).older.set(older),
            }
        }
    }
}
