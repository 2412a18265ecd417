//! The window: the stretch of address space that everything lives in.
//!
//! ```text
//! base
//!  │ pages 0 … n-1, 64 KiB each                   │ records     │ bitmaps        │ page map
//!  ├───────────────▶ frontier ────────────────────┼────▶────────┼────▶───────────┼────▶────────┤
//!   n × 65536                                       n × 64        n × 512          n × 4  bytes
//! ```
//!
//! Nothing here is mapped by being in the window: pages, records, bitmaps and page map are each committed from their start on, as the
//! page heap grows (`page::runs::metadata`). So a window may be as large as it likes, whatever limits the process has.
//!
//! [`Layout`] says where things are, and nothing else: it is arithmetic. [`View`] is what `free` looks an address up in: it knows how
//! far the page map is committed, its *reach*. Every thread heap has a view of its own, which may be older than the page heap's: an
//! address beyond its reach is then looked up again in the newest (`Own::renew_view`). `docs/decisions/0016-what-is-committed-when.md`.
//!
//! Invariants: `n` pages and their metadata fit between base and end; page 0 is never used, so that 0 can mean "none"; the entries of
//! all pages below a view's reach are committed, and stay so.

use crate::span::page_map::{Entry, PageMap};
use crate::span::record::Span;
use core::mem::size_of;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};

/// Bytes of bitmap kept for each page: one bit a granule.
pub const BITMAP_BYTES: usize = 512;

/// Bytes of window for each page: itself, its record, its bitmap, its page map entry.
const WINDOW_BYTES_PER_PAGE: usize = PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES + size_of::<u32>();

/// A window has a multiple of so many pages: records, bitmaps and page map then start at OS pages of any size.
pub const PAGES_UNIT: usize = PAGE_BYTES / size_of::<Span>();

const _: () = assert!((PAGES_UNIT * BITMAP_BYTES).is_multiple_of(PAGE_BYTES));

/// Where things are.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Address of page 0.
    pub(crate) base: *mut u8,
    /// Number of pages.
    pub(crate) n_pages: usize,
    /// Entry of page 0.
    pub(crate) map: PageMap,
}

// SAFETY: a `Layout` is three numbers; what may be done at these addresses is each user's to justify.
#[allow(unsafe_code)]
unsafe impl Send for Layout {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Layout {}

impl Layout {
    /// No window.
    pub const EMPTY: Self = Self { base: core::ptr::null_mut(), n_pages: 0, map: PageMap::EMPTY };

    /// Lays out a window of `window_bytes` at `base`, or `None` if that is too small to be of use.
    #[must_use]
    pub fn new(base: *mut u8, window_bytes: usize) -> Option<Self> {
        // Each array may be committed to the end of an OS page: the last one ends less than a page behind its last entry.
        let n_pages = (window_bytes.checked_sub(PAGE_BYTES)? / WINDOW_BYTES_PER_PAGE) & !(PAGES_UNIT - 1);
        // Page numbers are kept in 32 bits.
        if n_pages < PAGES_UNIT || n_pages > u32::MAX as usize {
            return None;
        }
        let map_offset = n_pages * (PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES);
        Some(Self { base, n_pages, map: PageMap::at(base.wrapping_add(map_offset)) })
    }

    /// Start of a page.
    #[inline]
    #[must_use]
    pub fn page_start(&self, page: u32) -> *mut u8 {
        self.base.wrapping_add((page as usize) << PAGE_BYTES_LOG2)
    }

    /// Record of a page. Committed for pages below the frontier.
    #[inline]
    #[must_use]
    pub fn record(&self, page: u32) -> *mut Span {
        self.records().wrapping_add(page as usize)
    }

    /// First word of a page's bitmap. Committed for pages below the frontier.
    #[inline]
    #[must_use]
    pub fn bitmap(&self, page: u32) -> *mut u64 {
        let bitmaps = self.records().wrapping_add(self.n_pages).cast::<u8>();
        bitmaps.wrapping_add(page as usize * BITMAP_BYTES).cast()
    }

    #[inline]
    fn records(&self) -> *mut Span {
        self.base.wrapping_add(self.n_pages << PAGE_BYTES_LOG2).cast()
    }
}

/// What an address is looked up in.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct View {
    base: *mut u8,
    /// Pages whose entries are committed, from page 0 on.
    reach: usize,
    map: PageMap,
}

// SAFETY: three numbers; the entries they lead to are atomics.
#[allow(unsafe_code)]
unsafe impl Send for View {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for View {}

impl View {
    /// No window: every address is outside.
    pub const EMPTY: Self = Self { base: core::ptr::null_mut(), reach: 0, map: PageMap::EMPTY };

    /// A view of the first `reach` pages.
    ///
    /// # Safety
    /// - The page map is committed for these pages, and stays so.
    #[allow(unsafe_code)]
    #[must_use]
    pub unsafe fn new(layout: &Layout, reach: usize) -> Self {
        Self { base: layout.base, reach, map: layout.map }
    }

    /// The page map.
    #[inline(always)]
    #[must_use]
    pub fn map(&self) -> PageMap {
        self.map
    }

    /// Start of a page.
    #[inline(always)]
    #[must_use]
    pub fn page_start(&self, page: u32) -> *mut u8 {
        self.base.wrapping_add((page as usize) << PAGE_BYTES_LOG2)
    }

    /// Pages whose entries can be read.
    #[inline]
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// The page that holds `address`, or `None` beyond the reach, and outside the window.
    #[inline(always)]
    #[must_use]
    pub fn page_of(&self, address: usize) -> Option<usize> {
        let page = address.wrapping_sub(self.base.addr()) >> PAGE_BYTES_LOG2;
        if page < self.reach { Some(page) } else { None }
    }

    /// The page map's entry for `address`, or `None` beyond the reach, and outside the window.
    #[inline(always)]
    #[must_use]
    #[allow(unsafe_code)]
    pub fn entry(&self, address: usize) -> Option<Entry> {
        // SAFETY: entries below the reach are committed (the promise of `View::new`).
        self.page_of(address).map(|page| unsafe { self.map.get(page) })
    }

    /// The size class of a block, if it is in a small span, whoever owns it.
    #[inline(always)]
    #[must_use]
    pub fn small_class(&self, address: usize) -> Option<usize> {
        self.entry(address).and_then(Entry::class)
    }
}

#[cfg(test)]
mod tests;
