//! The record of a span, kept outside the span.
//!
//! There is one record per page, in an array behind the pages. A committed record is never unmapped, so that a thread that reads late
//! still finds a record, though perhaps that of another span. The record of a span's first page describes it; the others only name that page.
//!
//! Invariants
//! - `first` is right in the first and the last page of every run, and in all pages of a small span.
//! - `kind` and `pages` are right in the first and the last page of every run: the page heap reads them in the neighbours of a run to join
//!   free ones.
//! - `access` is right in every page but those of quarantined runs, which are closed as a whole, and `PageAccess::Open` in those of runs in use.
//! - small: `n_free` bits are set in the bitmap; `n_out` blocks are in bins, in flight, or with the program; blocks that start
//!   in an OS page whose `fresh` bit is set are neither.
//!
//! Threads: the span's owner reads and writes all fields (a thread heap; the central list of its class, under its lock; the page heap, under
//! its lock). Any thread that holds a live block of the span may read `owner` and `first`, and a thread that
//! takes a freed run may read an `older` that is not its own any more. The page heap alone writes `kind`, `pages`,
//! `first`, `access` and `has_guards`.

use crate::span::page_index::PageIndex;
use core::cell::Cell;
use core::ffi::c_void;
use freestone_base::sync::{AtomicPtr, AtomicU32, Ordering};
use freestone_base::units::{Moment, Pages};

/// What a run of pages is used for, or the state of its pages if it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Never used, or given up: another part of the program has mapped something there.
    None = 0,
    /// Free, with memory behind it.
    Dirty,
    /// Free, without memory behind it; reads as zero.
    Clean,
    /// Free, with memory behind it that the kernel would not take back, or takes when it needs it.
    Stuck,
    /// Cut into blocks of one size class.
    Small,
    /// One large block.
    Large,
    /// Storage for records of heaps: never freed.
    Metadata,
    /// Free and unmapped, because address space was short.
    Reserved,
    /// Free; the kernel is taking its memory back. Only the thread that purges it may touch it.
    Purging,
    /// One page behind a large block or a span, every access to which faults.
    Guard,
    /// A large block that was freed: every access faults, and its addresses are not used again yet.
    Quarantined,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub(crate) const ALL: [Self; 11] = [
        Self::None,
        Self::Dirty,
        Self::Clean,
        Self::Stuck,
        Self::Small,
        Self::Large,
        Self::Metadata,
        Self::Reserved,
        Self::Purging,
        Self::Guard,
        Self::Quarantined,
    ];

    /// The number of kinds.
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// Whether a run of this kind is free and mapped, and not being purged.
    #[must_use]
    pub(crate) fn is_free_and_mapped(self) -> bool {
        matches!(self, Self::Clean | Self::Dirty | Self::Stuck)
    }
}

/// Whether a page can be accessed, and if not, what the kernel was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PageAccess {
    /// As all memory that is mapped.
    Open = 0,
    /// Not at all: it has markers in the page tables.
    Marked,
    /// Not at all: the mapping has no access rights.
    Denied,
}

/// Which list of its owner, or of those without one, a small span is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Listed {
    /// In none: it is the owner's current span.
    No = 0,
    /// That of spans with a free or uncarved block.
    Partial,
    /// That of spans without one.
    Full,
    /// That of spans without an owner that have got blocks back since somebody looked for OS pages that these emptied.
    Freed,
}

/// See the module header. 64 bytes: one cache line.
///
/// Wide because: one record describes whatever kind of run starts at its page, within one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Span {
    /// Small: the thread heap that owns it, null when abandoned. Large: the list of its explicit heap's large blocks (`LargeList`), or null.
    pub owner: AtomicPtr<c_void>,
    /// First page of the run.
    pub first: AtomicU32,
    /// Pages in the run.
    pub pages: Cell<Pages>,
    /// The next span in the list that the span is in, by its first page; `NONE` for none.
    pub next: Cell<PageIndex>,
    /// The one before, likewise.
    pub prev: Cell<PageIndex>,
    /// Small: a bit for each OS page, from the start, in which no block has been carved; or for each 64th of the span, if it has more than 64.
    /// Large and watched: what the program asked for (`thread::watched::large_block`).
    pub fresh: Cell<u64>,
    /// Small: set bits of the bitmap.
    pub n_free: Cell<u32>,
    /// Small: blocks in bins, in flight, or with the program.
    pub n_out: Cell<u32>,
    /// Dirty: the next older dirty run, by its first page; `NONE` for none. Freed, but not to the page heap yet: the next run in its list (`RunLists`), likewise.
    older: AtomicU32,
    /// Dirty: the next younger one, likewise.
    pub younger: Cell<PageIndex>,
    /// Dirty: when it became so, in ms of the kernel's clock, cut to 32 bits.
    pub dirty_since_ms: Cell<u32>,
    /// The kind of the run.
    pub kind: Cell<Kind>,
    /// Small: its size class.
    pub class: Cell<u8>,
    /// Small: the list of its owner that it is in.
    pub listed: Cell<Listed>,
    /// Large and free: huge pages are requested somewhere in it.
    pub is_huge: Cell<bool>,
    /// Small: uncarved OS pages may have memory behind them, from an earlier use of the run.
    pub fresh_has_memory: Cell<bool>,
    /// Small: uncarved OS pages read as zero, and were never used since the kernel provided their addresses.
    pub fresh_is_zero: Cell<bool>,
    /// Small and large: it is served with trailers, or what was asked for is recorded: by a watched heap.
    pub is_watched: Cell<bool>,
    /// Large: the heap profile has sampled it.
    pub is_sampled: Cell<bool>,
    /// Small: no bitmap word below this one has a bit set.
    pub first_word: Cell<u16>,
    /// Any page, whatever run it is in: whether it can be accessed.
    pub access: Cell<PageAccess>,
    /// Free: there may be pages in it that cannot be accessed.
    pub has_guards: Cell<bool>,
}

impl Span {
    /// The record of no run.
    #[must_use]
    pub(crate) const fn none() -> Self {
        Self {
            owner: AtomicPtr::new(core::ptr::null_mut()),
            first: AtomicU32::new(0),
            pages: Cell::new(Pages::ZERO),
            next: Cell::new(PageIndex::NONE),
            prev: Cell::new(PageIndex::NONE),
            fresh: Cell::new(0),
            n_free: Cell::new(0),
            n_out: Cell::new(0),
            older: AtomicU32::new(PageIndex::NONE.0),
            younger: Cell::new(PageIndex::NONE),
            dirty_since_ms: Cell::new(0),
            kind: Cell::new(Kind::None),
            class: Cell::new(0),
            listed: Cell::new(Listed::No),
            is_huge: Cell::new(false),
            fresh_has_memory: Cell::new(false),
            fresh_is_zero: Cell::new(false),
            is_watched: Cell::new(false),
            is_sampled: Cell::new(false),
            first_word: Cell::new(0),
            access: Cell::new(PageAccess::Open),
            has_guards: Cell::new(false),
        }
    }

    /// Pages in the run.
    #[inline]
    #[must_use]
    pub(crate) fn n_pages(&self) -> Pages {
        self.pages.get()
    }

    /// The first page of the run.
    #[inline]
    #[must_use]
    pub(crate) fn first_page(&self) -> PageIndex {
        PageIndex(self.first.load(Ordering::Relaxed))
    }

    /// The next older dirty run, or the next run in the list of freed ones.
    #[inline]
    #[must_use]
    pub(crate) fn older(&self) -> PageIndex {
        PageIndex(self.older.load(Ordering::Relaxed))
    }

    /// Sets [`Span::older`].
    #[inline]
    pub(crate) fn set_older(&self, page: PageIndex) {
        self.older.store(page.0, Ordering::Relaxed);
    }

    /// Since when the run has been dirty.
    #[must_use]
    pub(crate) fn dirty_since(&self) -> Moment {
        Moment(self.dirty_since_ms.get())
    }
}

const _: () = assert!(size_of::<Span>() == 64);
