//! The address range: the stretch of address space that all pages and their metadata lie in.
//!
//! ```text
//! base
//!  │ pages 0 … n-1, 64 KiB each                   │ records     │ bitmaps        │ page map
//!  ├───────────────▶ high water ──────────────────┼────▶────────┼────▶───────────┼────▶────────┤
//!   n × 65536                                       n × 64        n × 512          n × 4  bytes
//! ```
//!
//! Nothing in the range is mapped at first. Pages, records, bitmaps and page map are each committed from their start on, as the page heap
//! grows (`page::runs::metadata`): the size of the range counts against no limit of the process.
//!
//! [`Layout`] says where things are: it is arithmetic. `free` looks addresses up in a [`View`], which also has how far the page map is committed,
//! its *reach*. Every thread heap has a view of its own, which may be older than the page heap's: an address beyond its reach is then looked
//! up again in the newest view (`Own::renew_view`). `docs/decisions/0016-what-is-committed-when.md` has the reasons.
//!
//! Invariants
//! - `n` pages and their metadata fit between base and end.
//! - Page 0 is never handed out, so that 0 can mean "none".
//! - The entries of all pages below a view's reach are committed, and stay so.

use crate::span::page_index::PageIndex;
use crate::span::page_map::{Entry, PageMap};
use crate::span::record::Span;
use core::mem::size_of;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};

/// Bytes of bitmap for each page: one bit per granule.
pub(crate) const BITMAP_BYTES: usize = 512;

/// Bytes of the range for each page: the page, its record, its bitmap and its page map entry.
const RANGE_BYTES_PER_PAGE: usize = PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES + size_of::<u32>();

/// A range has a multiple of this many pages, so that records, bitmaps and page map start at OS pages of any size.
pub(crate) const PAGES_UNIT: usize = PAGE_BYTES / size_of::<Span>();

const _: () = assert!((PAGES_UNIT * BITMAP_BYTES).is_multiple_of(PAGE_BYTES));

/// Where pages and their metadata are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Address of page 0.
    pub(crate) base: *mut u8,
    /// Number of pages.
    pub(crate) n_pages: usize,
    /// Entry of page 0.
    pub(crate) map: PageMap,
}

// SAFETY: a `Layout` is three numbers: its functions compute addresses, and access no memory.
#[allow(unsafe_code)]
unsafe impl Send for Layout {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Layout {}

impl Layout {
    /// No address range.
    pub(crate) const EMPTY: Self = Self { base: core::ptr::null_mut(), n_pages: 0, map: PageMap::EMPTY };

    /// Lays out an address range of `range_bytes` at `base`; `None` if it is too small to be of use, or has too many pages.
    #[must_use]
    pub(crate) fn new(base: *mut u8, range_bytes: usize) -> Option<Self> {
        // Each array may be committed to the end of an OS page: one page of room for the last one.
        let n_pages = (range_bytes.checked_sub(PAGE_BYTES)? / RANGE_BYTES_PER_PAGE) & !(PAGES_UNIT - 1);
        // Page numbers have 32 bits.
        if n_pages < PAGES_UNIT || n_pages > u32::MAX as usize {
            return None;
        }
        let map_offset = n_pages * (PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES);
        Some(Self { base, n_pages, map: PageMap::at(base.wrapping_add(map_offset)) })
    }

    /// Start of a page.
    #[inline]
    #[must_use]
    pub(crate) fn page_start(&self, page: PageIndex) -> *mut u8 {
        self.base.wrapping_add((page.0 as usize) << PAGE_BYTES_LOG2)
    }

    /// Record of a page. It is committed for pages below the high-water mark.
    #[inline]
    #[must_use]
    pub(crate) fn record(&self, page: PageIndex) -> *mut Span {
        self.records().wrapping_add(page.0 as usize)
    }

    /// First word of a page's bitmap. It is committed for pages below the high-water mark.
    #[inline]
    #[must_use]
    pub(crate) fn bitmap(&self, page: PageIndex) -> *mut u64 {
        let bitmaps = self.records().wrapping_add(self.n_pages).cast::<u8>();
        bitmaps.wrapping_add(page.0 as usize * BITMAP_BYTES).cast()
    }

    #[inline]
    fn records(&self) -> *mut Span {
        self.base.wrapping_add(self.n_pages << PAGE_BYTES_LOG2).cast()
    }
}

/// What an address is looked up in: the address range, as far as its page map is committed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct View {
    base: *mut u8,
    /// Pages whose entries are committed, from page 0 on.
    reach: usize,
    map: PageMap,
}

// SAFETY: a `View` is three numbers; the entries that it reads are atomics.
#[allow(unsafe_code)]
unsafe impl Send for View {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for View {}

impl View {
    /// No address range: every address is outside.
    pub(crate) const EMPTY: Self = Self { base: core::ptr::null_mut(), reach: 0, map: PageMap::EMPTY };

    /// A view of the first `reach` pages.
    ///
    /// # Safety
    /// - The page map is committed for these pages, and stays so.
    #[allow(unsafe_code)]
    #[must_use]
    pub(crate) unsafe fn new(layout: &Layout, reach: usize) -> Self {
        Self { base: layout.base, reach, map: layout.map }
    }

    /// The page map.
    #[inline(always)]
    #[must_use]
    pub(crate) fn map(&self) -> PageMap {
        self.map
    }

    /// Start of a page.
    #[inline(always)]
    #[must_use]
    pub(crate) fn page_start(&self, page: PageIndex) -> *mut u8 {
        self.base.wrapping_add((page.0 as usize) << PAGE_BYTES_LOG2)
    }

    /// Pages whose entries can be read.
    #[inline]
    #[must_use]
    pub(crate) fn reach(&self) -> usize {
        self.reach
    }

    /// The page that holds `address`, or `None` beyond the reach, and outside the range.
    #[inline(always)]
    #[must_use]
    pub(crate) fn page_of(&self, address: usize) -> Option<PageIndex> {
        // The reach is at most `u32::MAX` (`Layout::new`).
        self.number_of(address).map(|page| PageIndex(page as u32))
    }

    /// As [`View::page_of`], as wide as an address: the fast path of `free` needs no conversion.
    #[inline(always)]
    fn number_of(&self, address: usize) -> Option<usize> {
        let page = address.wrapping_sub(self.base.addr()) >> PAGE_BYTES_LOG2;
        if page < self.reach { Some(page) } else { None }
    }

    /// The page map's entry for `address`, or `None` beyond the reach, and outside the range.
    #[inline(always)]
    #[must_use]
    #[allow(unsafe_code)]
    pub(crate) fn entry(&self, address: usize) -> Option<Entry> {
        // SAFETY: the page is below the reach, so its entry is committed (`View::new`).
        self.number_of(address).map(|page| unsafe { self.map.get(page) })
    }

    /// The size class of a block, if it is in a small span, whoever owns it.
    #[inline(always)]
    #[must_use]
    pub(crate) fn small_class(&self, address: usize) -> Option<usize> {
        self.entry(address).and_then(Entry::class)
    }
}

#[cfg(test)]
mod tests;
