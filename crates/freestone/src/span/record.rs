//! What is known of a span, out of band.
//!
//! One record a page, in an array beside the window: type-stable, never unmapped once committed, so that a late reader finds a
//! record, if perhaps of another span. The record of a span's first page describes it; the others only say where that is.
//!
//! Invariants
//! - `first` is right in the first and the last page of every run, and in all pages of a small span.
//! - `kind` is right in the first and the last page of every run: neighbours look at it to coalesce.
//! - small: `n_free` bits are set in the bitmap; `n_out` blocks are in bins, in transit, or with the program; blocks that start
//!   in an OS page whose `fresh` bit is set are neither.
//!
//! Who may touch it: the span's owner (a thread heap; the central list of its class, under its lock; the page heap, under its).
//! `owner` and `first` are read by any thread that holds a live block of the span.

use crate::span::page_index::PageIndex;
use core::cell::Cell;
use core::ffi::c_void;
use freestone_base::sync::{AtomicPtr, AtomicU32, Ordering};
use freestone_base::units::{Moment, Pages};

/// What a run of pages is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Not committed, or not ours.
    None = 0,
    /// Free; memory behind it.
    Dirty,
    /// Free; no memory behind it, reads as zero.
    Clean,
    /// Free; memory behind it that the kernel would not take back.
    Stuck,
    /// Cut into blocks of one size class.
    Small,
    /// One block.
    Large,
    /// The heap's own metadata: never freed.
    Metadata,
    /// Free; not mapped, for address space was short.
    Reserved,
    /// Free; the kernel is taking its memory back. Nobody's but the one's who asked for that.
    Purging,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Dirty,
        Self::Clean,
        Self::Stuck,
        Self::Small,
        Self::Large,
        Self::Metadata,
        Self::Reserved,
        Self::Purging,
    ];

    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether a run of this kind can be used as it is.
    #[must_use]
    pub fn is_free_and_mapped(self) -> bool {
        matches!(self, Self::Clean | Self::Dirty | Self::Stuck)
    }
}

/// Which list of its owner a small span is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Listed {
    /// In none: it is the current one.
    No = 0,
    /// Has a block to give.
    Partial,
    /// Has none.
    Full,
}

/// See the module header. 64 bytes: one cache line.
///
/// Wide because: one record describes whatever kind of run starts at its page, within one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Span {
    /// Small: the thread heap that owns it, null when abandoned. Large: the explicit heap it belongs to, or null.
    pub owner: AtomicPtr<c_void>,
    /// First page of the run.
    pub first: AtomicU32,
    /// Pages in the run.
    pub pages: Cell<u32>,
    /// Neighbours in whatever list the span is in, by page; 0 for none.
    pub next: Cell<u32>,
    /// See `next`.
    pub prev: Cell<u32>,
    /// Small: OS pages, from the start, in which no block has been carved; at most 64.
    pub fresh: Cell<u64>,
    /// Small: set bits of the bitmap.
    pub n_free: Cell<u32>,
    /// Small: blocks in bins, in transit, or with the program.
    pub n_out: Cell<u32>,
    /// Dirty: neighbours in order of age, by page.
    pub older: Cell<u32>,
    /// See `older`.
    pub younger: Cell<u32>,
    /// Dirty: when it became so, in ms of the kernel's clock, cut to 32 bits.
    pub dirty_since_ms: Cell<u32>,
    /// What it is.
    pub kind: Cell<Kind>,
    /// Small: its size class.
    pub class: Cell<u8>,
    /// Small: where its owner keeps it.
    pub listed: Cell<Listed>,
    /// Large and free: huge pages were asked for, somewhere in it.
    pub is_huge: Cell<bool>,
    /// Small: what was never carved may have memory behind it all the same, of whatever it was before.
    pub fresh_has_memory: Cell<bool>,
    /// Small: no bitmap word below this one has a bit set.
    pub first_word: Cell<u16>,
}

impl Span {
    /// The record of no run.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            owner: AtomicPtr::new(core::ptr::null_mut()),
            first: AtomicU32::new(0),
            pages: Cell::new(0),
            next: Cell::new(0),
            prev: Cell::new(0),
            fresh: Cell::new(0),
            n_free: Cell::new(0),
            n_out: Cell::new(0),
            older: Cell::new(0),
            younger: Cell::new(0),
            dirty_since_ms: Cell::new(0),
            kind: Cell::new(Kind::None),
            class: Cell::new(0),
            listed: Cell::new(Listed::No),
            is_huge: Cell::new(false),
            fresh_has_memory: Cell::new(false),
            first_word: Cell::new(0),
        }
    }

    /// Pages in the run.
    #[inline]
    #[must_use]
    pub fn n_pages(&self) -> Pages {
        Pages(self.pages.get())
    }

    /// The first page of the run.
    #[inline]
    #[must_use]
    pub fn first_page(&self) -> PageIndex {
        PageIndex(self.first.load(Ordering::Relaxed))
    }

    /// Since when the run has been dirty.
    #[must_use]
    pub fn dirty_since(&self) -> Moment {
        Moment(self.dirty_since_ms.get())
    }
}

const _: () = assert!(size_of::<Span>() == 64);
