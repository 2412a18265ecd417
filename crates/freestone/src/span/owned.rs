//! The proof that its holder owns a span, with safe access to the span's records, bitmap and page map entries.
#![allow(unsafe_code)]
//!
//! ```text
//!  OwnedSpan ─┬─▶ records            one per page; the first describes the span (`Deref`)
//!             ├─▶ bitmap             64 words per page, one bit per granule
//!             └─▶ page map entries   one per page
//! ```
//!
//! Every span has one owner at a time (see `record`): a thread heap, the central list of its class under its lock, or the page heap under its
//! lock. Code that finds a span makes the proof, and states there why it owns the span. The functions that get the proof are safe. The proof
//! is not `Copy`: a function that gives the span to another owner takes it by value.
//!
//! # Safety
//! Pages below the high-water mark have records, bitmaps and entries, which stay committed. All three arrays have one element or one stretch per
//! page, in the order of the pages: those of a span are adjacent.

use crate::span::{Entry, Layout, PageIndex, Span};
use core::cell::Cell;
use core::ops::Deref;
use core::slice;

/// Words of bitmap for each page.
const BITMAP_WORDS: usize = crate::span::layout::BITMAP_BYTES / size_of::<u64>();

/// See the module header. It reads as the record of the span's first page.
#[derive(Debug)]
pub(crate) struct OwnedSpan<'a> {
    layout: &'a Layout,
    page: PageIndex,
    record: &'a Span,
}

impl<'a> OwnedSpan<'a> {
    /// The proof for the span, or another run of pages, that starts at `page`.
    ///
    /// # Safety
    /// - `page` is below the high-water mark of the page heap whose layout this is, and starts a run.
    /// - The caller owns the run: no other code changes its record, except `owner` and `first`, while the proof is used.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn at(layout: &'a Layout, page: PageIndex) -> Self {
        // SAFETY: the page is below the high-water mark (this function's contract), so its record is committed, and stays so.
        let record = unsafe { &*layout.record(page) };
        Self { layout, page, record }
    }

    /// Where things are in the address range.
    #[inline]
    #[must_use]
    pub(crate) fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The span's first page.
    #[inline]
    #[must_use]
    pub(crate) fn page(&self) -> PageIndex {
        self.page
    }

    /// The span's first byte.
    #[inline]
    #[must_use]
    pub(crate) fn start(&self) -> *mut u8 {
        self.layout.page_start(self.page)
    }

    /// The record of its first page, which describes it.
    #[inline]
    #[must_use]
    pub(crate) fn record(&self) -> &'a Span {
        self.record
    }

    /// The records of its pages.
    #[must_use]
    pub(crate) fn records(&self) -> &'a [Span] {
        // SAFETY: all pages of a run in use are below the high-water mark, so their records are committed; they lie one behind the other.
        unsafe { slice::from_raw_parts(self.layout.record(self.page), self.record.n_pages().0 as usize) }
    }

    /// The words of its bitmap: one bit for each granule, more than it has blocks.
    #[inline]
    #[must_use]
    pub(crate) fn bitmap(&self) -> &'a [Cell<u64>] {
        let words = self.layout.bitmap(self.page).cast_const().cast::<Cell<u64>>();
        // SAFETY: all pages of a run in use are below the high-water mark, so their bitmaps are committed; they lie one behind the other, and only
        // the span's owner reads or writes them.
        unsafe { slice::from_raw_parts(words, self.record.n_pages().0 as usize * BITMAP_WORDS) }
    }

    /// Sets the page map entries of all its pages.
    pub(crate) fn set_entries(&self, entry: Entry) {
        // SAFETY: all pages of a run in use are below the high-water mark, so their entries are committed; and the span is the holder's.
        unsafe { self.layout.map.set(self.page, self.record.n_pages(), entry) };
    }

    /// The page map entry of the page with number `at` in the span; [`Entry::NONE`] beyond its end.
    #[must_use]
    pub(crate) fn entry(&self, at: u32) -> Entry {
        if at >= self.record.n_pages().0 {
            return Entry::NONE;
        }
        // SAFETY: the page is one of the span's, hence below the high-water mark, so its entry is committed.
        unsafe { self.layout.map.get(self.page.0 as usize + at as usize) }
    }
}

impl Deref for OwnedSpan<'_> {
    type Target = Span;

    #[inline]
    fn deref(&self) -> &Span {
        self.record
    }
}

#[cfg(test)]
mod tests;
