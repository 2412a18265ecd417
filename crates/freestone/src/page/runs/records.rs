//! The records and page map entries of the pages below the high-water mark, as safe functions.
#![allow(unsafe_code)]
//!
//! ```text
//!  page 0 │ 1 … high_water-1          │ high_water …
//!  (none) │ in a run: has a record    │ never used; may have no record
//! ```
//!
//! # Safety
//! All functions compare the page with the high-water mark, below which records and entries are committed and stay so. Which thread changes what:
//! the fields read here of a run in use (`kind`, `pages`, `first`, `is_huge`, `owner`) change only under the page heap's lock, or are
//! atomic; all fields of free runs are the lock's.

use crate::page::runs::metadata::MetadataArrays;
use crate::span::{Entry, Kind, Layout, OwnedSpan, PageIndex, Span, SpanList};
use freestone_base::units::Pages;
use freestone_os::{Errno, Os};

/// See the module header.
#[derive(Debug)]
pub(super) struct Records {
    metadata: MetadataArrays,
    high_water: PageIndex,
    /// A placeholder for the record of a page that has none.
    none: Span,
}

impl Records {
    /// No address range, and no pages.
    pub(super) const fn empty() -> Self {
        Self { metadata: MetadataArrays::NONE, high_water: PageIndex::NONE, none: Span::none() }
    }

    /// Begins an address range of which no page was used yet. Page 0 is marked as taken: it is the neighbour of page 1, and never free. (Writing
    /// its record before reading it saves a page fault.)
    pub(super) fn begin(&mut self, metadata: MetadataArrays) {
        self.metadata = metadata;
        self.raise(Pages(1));
        self.get(PageIndex(0)).kind.set(Kind::Metadata);
    }

    #[inline]
    pub(super) fn layout(&self) -> &Layout {
        self.metadata.layout()
    }

    pub(super) fn metadata(&self) -> &MetadataArrays {
        &self.metadata
    }

    pub(super) fn high_water(&self) -> PageIndex {
        self.high_water
    }

    /// Commits the metadata of the next `pages` beyond the high-water mark.
    pub(super) fn extend<O: Os>(&mut self, os: &O, pages: Pages) -> Result<(), Errno> {
        self.metadata.extend(os, self.high_water.0 as usize + pages.0 as usize)
    }

    /// Commits the first `bytes` of the storage.
    pub(super) fn extend_storage<O: Os>(&mut self, os: &O, bytes: usize) -> Result<(), Errno> {
        self.metadata.extend_storage(os, bytes)
    }

    /// Raises the high-water mark by `pages`, but not beyond the pages that have metadata.
    pub(super) fn raise(&mut self, pages: Pages) {
        let raised = self.high_water + pages;
        debug_assert!(raised.0 as usize <= self.metadata.pages());
        if raised.0 as usize <= self.metadata.pages() {
            self.high_water = raised;
        }
    }

    /// The record of a page; for a page at or beyond the high-water mark, one of kind `None`.
    #[inline]
    pub(super) fn get(&self, page: PageIndex) -> &Span {
        if page < self.high_water {
            // SAFETY: The page is below the high-water mark, so its record is committed, and stays so.
            unsafe { &*self.layout().record(page) }
        } else {
            &self.none
        }
    }

    /// Puts a run in front of a list.
    pub(super) fn push(&self, list: &SpanList, page: PageIndex) {
        if let Some(run) = self.owned(page) {
            list.push(&run);
        }
    }

    /// Takes a run out of the list that it is in.
    pub(super) fn remove(&self, list: &SpanList, page: PageIndex) {
        if let Some(run) = self.owned(page) {
            list.remove(&run);
        }
    }

    /// The proof for a run that goes into a list or out of it; `None` at or beyond the high-water mark.
    fn owned(&self, page: PageIndex) -> Option<OwnedSpan<'_>> {
        // SAFETY: The page is below the high-water mark, and starts a run: a free one, which is the lock's, or a large block that the caller
        // allocates or frees just now.
        (page < self.high_water).then(|| unsafe { OwnedSpan::at(self.layout(), page) })
    }

    /// The runs of a list, first to last.
    pub(super) fn iter(&self, list: &SpanList) -> impl Iterator<Item = (PageIndex, &Span)> {
        list.iter(self.layout())
    }

    /// The entry of a page in the page map; for a page at or beyond the high-water mark, [`Entry::NONE`].
    pub(super) fn entry(&self, page: PageIndex) -> Entry {
        if page >= self.high_water {
            return Entry::NONE;
        }
        // SAFETY: The page is below the high-water mark, so its entry is committed.
        unsafe { self.layout().map.get(page.0 as usize) }
    }

    /// Sets the entries of `pages` from `page` on.
    pub(super) fn set_entries(&self, page: PageIndex, pages: Pages, entry: Entry) {
        if page + pages <= self.high_water {
            // SAFETY: The pages are below the high-water mark, so their entries are committed; whose run they are in changes under the lock.
            unsafe { self.layout().map.set(page, pages, entry) }
        }
    }
}
