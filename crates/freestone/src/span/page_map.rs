//! The page map: one `u32` per page, which every `free` reads.
#![allow(unsafe_code)]
//!
//! ```text
//!  31                     8 7        0
//! ┌────────────────────────┬──────────┐
//! │ generation             │ code     │    0 as a whole: foreign
//! └────────────────────────┴──────────┘
//! generation 0  none: LARGE or CACHED      code < N_CLASSES  size class of a small span
//! generation 1  abandoned                 code = LARGE      first page of a large block
//! generation 2… a thread heap             code = CACHED     of one that was freed into a large-run cache
//!   2^23… an explicit heap                (the other pages of a large block are 0)
//! ```
//!
//! `entry - tag < N_CLASSES`, with `tag = generation << 8`: this one comparison decides on the fast path of `free` whether the heap owns the
//! block, and the difference is the size class.
//!
//! Threads: the owner of the span writes (a thread heap, the central list, the page heap). Every thread reads, relaxed: the span of a live
//! block stays a span, and a thread that drains a former owner's inbox detects that the owner has changed.
//!
//! # Safety
//! The map is committed from its start on, as the page heap grows. Entries of pages below the high-water mark, and below a `View`'s reach,
//! are committed, and stay so.

use crate::size_class::{N_CLASSES, SizeClass};
use crate::span::page_index::PageIndex;
use freestone_base::sync::{AtomicU32, Ordering};
use freestone_base::units::Pages;

/// Bits of the code.
const CODE_BITS: u32 = 8;

/// Code of the first page of a large block.
const LARGE: u32 = 0xF0;

/// Code of the first page of a large block that was freed into a large-run cache.
const CACHED: u32 = 0xF1;

const _: () = assert!(N_CLASSES < LARGE as usize);

/// The owner of a span's free blocks: a generation, given to one thread heap for its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Generation(u32);

impl Generation {
    /// The central lists.
    pub(crate) const ABANDONED: Self = Self(1);
    /// The placeholder heap of threads that have none: it never owns a span.
    pub(crate) const NONE: Self = Self((1 << (32 - CODE_BITS)) - 1);
    /// The first generation of a thread heap.
    pub(crate) const FIRST: Self = Self(2);
    /// The first generation of an explicit heap. Explicit heaps have the upper half of the numbers, so that a thread that frees a block sees from
    /// the page map alone that the block's span may be deleted with its heap.
    pub(crate) const FIRST_EXPLICIT: Self = Self(1 << (31 - CODE_BITS));

    /// The generation with a number, which is that of a heap.
    pub(crate) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// The next generation of the same half; the last one is followed by the first.
    #[must_use]
    pub(crate) const fn next(self) -> Self {
        let next = Self(self.0 + 1);
        if next.0 == Self::FIRST_EXPLICIT.0 {
            Self::FIRST
        } else if next.0 == Self::NONE.0 {
            Self::FIRST_EXPLICIT
        } else {
            next
        }
    }

    /// Its number.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is the generation of an explicit heap.
    #[inline]
    #[must_use]
    pub(crate) const fn is_explicit(self) -> bool {
        self.0 >= Self::FIRST_EXPLICIT.0 && self.0 < Self::NONE.0
    }

    /// The number to subtract from an entry: see the module header.
    #[must_use]
    #[inline]
    pub(crate) const fn tag(self) -> u32 {
        self.0 << CODE_BITS
    }
}

/// An entry from which a heap's tag was subtracted: the size class, if the heap owns the page. It stays in the register of `free`'s one comparison, and whoever
/// has to know more of the page adds the tag again.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Untagged(u32);

impl Untagged {
    /// The size class, if the page is of a small span that the tag's heap owns, and the class is below `bound`, which is [`N_CLASSES`] or less.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn class_below(self, bound: usize) -> Option<usize> {
        let code = self.0 as usize;
        if code < bound { Some(code) } else { None }
    }

    /// The entry, with the same `tag`.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn tagged(self, tag: u32) -> Entry {
        Entry(self.0.wrapping_add(tag))
    }
}

/// An entry of the page map, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Entry(u32);

impl Entry {
    /// A foreign page, or one that is not the first of a large block.
    pub(crate) const NONE: Self = Self(0);
    /// The first page of a large block.
    pub(crate) const LARGE: Self = Self(LARGE);
    /// The first page of a large block that was freed into a large-run cache.
    pub(crate) const CACHED: Self = Self(CACHED);

    /// The entry as it is stored.
    #[must_use]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// A page of a small span.
    #[must_use]
    pub(crate) const fn small(generation: Generation, class: SizeClass) -> Self {
        Self(generation.tag() | class as u32)
    }

    /// What is left of the entry without `tag`.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn untagged(self, tag: u32) -> Untagged {
        Untagged(self.0.wrapping_sub(tag))
    }

    /// The size class, if the page is of a small span that `tag` owns. One subtraction, one comparison.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn class_if_owned(self, tag: u32) -> Option<usize> {
        self.untagged(tag).class_below(N_CLASSES)
    }

    /// The size class, if the page is of a small span, whoever owns it.
    #[inline]
    #[must_use]
    pub(crate) const fn class(self) -> Option<usize> {
        let code = (self.0 & ((1 << CODE_BITS) - 1)) as usize;
        if self.0 >> CODE_BITS != 0 && code < N_CLASSES { Some(code) } else { None }
    }

    /// The owner; meaningful for small spans.
    #[inline]
    #[must_use]
    pub(crate) const fn generation(self) -> Generation {
        Generation(self.0 >> CODE_BITS)
    }
}

/// Where the map is.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct PageMap(*const AtomicU32);

impl PageMap {
    /// No map: for an address range without pages.
    pub(crate) const EMPTY: Self = Self(core::ptr::null());

    /// The map at an address.
    #[must_use]
    pub(crate) fn at(start: *mut u8) -> Self {
        Self(start.cast())
    }

    /// First byte of the map.
    #[must_use]
    pub(crate) fn start(self) -> *mut u8 {
        self.0.cast_mut().cast()
    }

    /// The place of the entry of the page with number `page`.
    #[inline(always)]
    fn place(self, page: usize) -> *const AtomicU32 {
        self.0.wrapping_add(page)
    }

    /// The entry of the page with number `page`.
    ///
    /// # Safety
    /// - The entry is committed: `page` is below the high-water mark, or below a view's reach.
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn get(self, page: usize) -> Entry {
        // SAFETY: the page is below the high-water mark or a view's reach, so its entry is committed; it is aligned, and only accessed as an atomic.
        let entry = unsafe { &*self.place(page) };
        Entry(entry.load(Ordering::Relaxed))
    }

    /// Sets the entry of `page`.
    ///
    /// # Safety
    /// - As for [`PageMap::get`], and the span that this page belongs to is the caller's.
    #[inline(always)]
    pub(crate) unsafe fn set_one(self, page: PageIndex, entry: Entry) {
        // SAFETY: the page is below the high-water mark or a view's reach, so its entry is committed; it is aligned, and only accessed as an atomic.
        let place = unsafe { &*self.place(page.0 as usize) };
        place.store(entry.0, Ordering::Relaxed);
    }

    /// Sets the entries of `pages` from `first` on.
    ///
    /// # Safety
    /// - As for [`PageMap::get`], and the span that these pages belong to is the caller's.
    pub(crate) unsafe fn set(self, first: PageIndex, pages: Pages, entry: Entry) {
        for page in first.0..(first + pages).0 {
            // SAFETY: the page belongs to a span of the caller's, which is in use: its entry is committed.
            unsafe { self.set_one(PageIndex(page), entry) }
        }
    }
}

#[cfg(test)]
mod tests;
