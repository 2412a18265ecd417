//! The address range: the stretch of address space that all pages and their metadata lie in.
//!
//! ```text
//! base
//!  │ pages 0 … n-1, 64 KiB each     │ gap │ records     │ bitmaps        │ page map    │ gap │ storage │ gap
//!  ├──────────▶ high water ─────────┼─────┼────▶────────┼────▶───────────┼────▶────────┼─────┼──▶──────┼─────
//!   n × 65536                             n × 64        n × 512          n × 4               n × 4096  bytes
//! ```
//!
//! Nothing in the range is mapped at first. Pages, records, bitmaps, page map and storage (for thread heaps and the like) are each committed from
//! their start on, as the page heap grows (`page::runs::metadata`): the size of the range counts against no limit of the process.
//!
//! The gaps are never mapped: a program that writes past the last page faults before it comes to metadata. The first gap is of random length, at least a
//! page and up to an eighth of the range in steps of an OS page: so the address of a block says nothing of where metadata is.
//!
//! [`Layout`] says where things are: it is arithmetic. `free` looks addresses up in a [`View`], which also has how far the page map is committed,
//! its *reach*. Every thread heap has a view of its own, which may be older than the page heap's: an address beyond its reach is then looked
//! up again in the newest view (`Own::renew_view`). `docs/decisions/0016-what-is-committed-when.md` has the reasons.
//!
//! Invariants
//! - `n` pages, their metadata and the gaps fit between base and end.
//! - Page 0 is never handed out, so that 0 can mean "none".
//! - The entries of all pages below a view's reach are committed, and stay so.

use crate::size_class::GRANULE_BYTES;
use crate::span::page_index::PageIndex;
use crate::span::page_map::{Entry, PageMap};
use crate::span::record::Span;
use core::mem::size_of;
use core::ptr;
use freestone_base::align;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};

/// Bytes of bitmap for each page: one bit per granule.
pub(crate) const BITMAP_BYTES: usize = 512;

/// Bytes of storage for each page of the range: with as many pages as are wanted, room for millions of thread heaps, and on 32-bit processors for
/// hundreds.
const STORAGE_BYTES: usize = if usize::BITS == 64 { 4096 } else { 128 };

/// Bytes of the range for each page: the page, its record, its bitmap, its page map entry, and storage.
const RANGE_BYTES_PER_PAGE: usize = PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES + size_of::<u32>() + STORAGE_BYTES;

/// Bytes of the gaps of fixed length, and of what rounding up to whole pages takes.
const GAPS_BYTES: usize = 4 * PAGE_BYTES;

/// At least this part of a range is where its metadata may be.
const SLACK_SHARE: usize = 8;

/// A range has a multiple of this many pages, so that records, bitmaps and page map start at OS pages of any size.
pub(crate) const PAGES_UNIT: usize = PAGE_BYTES / size_of::<Span>();

const _: () = assert!(PAGES_UNIT * BITMAP_BYTES % PAGE_BYTES == 0);

/// Where pages and their metadata are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Address of page 0.
    pub(crate) base: *mut u8,
    /// Number of pages.
    pub(crate) n_pages: usize,
    /// Record of page 0.
    records: *mut Span,
    /// Entry of page 0.
    pub(crate) map: PageMap,
}

// SAFETY: a `Layout` is four numbers: its functions compute addresses, and access no memory.
#[allow(unsafe_code)]
unsafe impl Send for Layout {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Layout {}

impl Layout {
    /// No address range.
    pub(crate) const EMPTY: Self =
        Self { base: ptr::null_mut(), n_pages: 0, records: ptr::null_mut(), map: PageMap::EMPTY };

    /// Lays out an address range of `range_bytes` at `base`, in an address space of OS pages of `os_page_bytes`; `None` if it is too small to be of
    /// use, or has too many pages. `random` says where in the range metadata is.
    #[must_use]
    pub(crate) fn new(base: *mut u8, range_bytes: usize, os_page_bytes: usize, random: u64) -> Option<Self> {
        let usable = range_bytes.checked_sub(GAPS_BYTES)?;
        let n_pages = ((usable - usable / SLACK_SHARE) / RANGE_BYTES_PER_PAGE) & !(PAGES_UNIT - 1);
        // Page numbers have 32 bits.
        if n_pages < PAGES_UNIT || n_pages > u32::MAX as usize {
            return None;
        }
        let places = (usable - n_pages * RANGE_BYTES_PER_PAGE) / os_page_bytes;
        let gap = PAGE_BYTES + random as usize % (places + 1) * os_page_bytes;
        let records = base.wrapping_add((n_pages << PAGE_BYTES_LOG2) + gap);
        let map = PageMap::at(records.wrapping_add(n_pages * (size_of::<Span>() + BITMAP_BYTES)));
        Some(Self { base, n_pages, records: records.cast(), map })
    }

    /// As [`Layout::new`], where memory grows at its end: metadata and storage come first, each in whole pages, and the pages after them. They are then
    /// committed for the whole range as soon as the first page is, and take memory when they are written.
    ///
    /// ```text
    /// start
    ///  │ records │ bitmaps │ page map │ gap │ storage │ pages 0 … n-1, 64 KiB each
    ///  ├─────────┴─────────┴──────────┴─────┴─────────┼──────────▶ high water
    /// ```
    #[must_use]
    pub(crate) fn metadata_first(start: *mut u8, range_bytes: usize) -> Option<Self> {
        let usable = range_bytes.checked_sub(GAPS_BYTES)?;
        let n_pages = (usable / RANGE_BYTES_PER_PAGE) & !(PAGES_UNIT - 1);
        if n_pages < PAGES_UNIT || n_pages > u32::MAX as usize {
            return None;
        }
        let map = PageMap::at(start.wrapping_add(n_pages * (size_of::<Span>() + BITMAP_BYTES)));
        let mut layout = Self { base: start, n_pages, records: start.cast(), map };
        let (storage, storage_bytes) = layout.storage();
        layout.base = storage.wrapping_add(align::up(storage_bytes, PAGE_BYTES));
        Some(layout)
    }

    /// Start of the storage for thread heaps and the like, and its bytes.
    #[must_use]
    pub(crate) fn storage(&self) -> (*mut u8, usize) {
        let map_bytes = align::up(self.n_pages * size_of::<u32>(), PAGE_BYTES);
        (self.map.start().wrapping_add(map_bytes + PAGE_BYTES), self.n_pages * STORAGE_BYTES)
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
        self.records.wrapping_add(page.0 as usize)
    }

    /// First word of a page's bitmap. It is committed for pages below the high-water mark.
    #[inline]
    #[must_use]
    pub(crate) fn bitmap(&self, page: PageIndex) -> *mut u64 {
        let bitmaps = self.records.wrapping_add(self.n_pages).cast::<u8>();
        bitmaps.wrapping_add(page.0 as usize * BITMAP_BYTES).cast()
    }
}

/// What an address is looked up in: the address range, as far as its page map is committed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct View {
    base: *mut u8,
    /// Granules of the pages whose entries are committed, from page 0 on. In granules, so that a block's address is compared in one step and
    /// loses its lowest bits only if they are zero: see [`View::entry_of_block`].
    reach_granules: usize,
    map: PageMap,
}

/// Granules of a page.
const PAGE_GRANULES_LOG2: u32 = PAGE_BYTES_LOG2 - GRANULE_BYTES.ilog2();

// SAFETY: a `View` is three numbers; the entries that it reads are atomics.
#[allow(unsafe_code)]
unsafe impl Send for View {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for View {}

impl View {
    /// No address range: every address is outside.
    pub(crate) const EMPTY: Self = Self { base: ptr::null_mut(), reach_granules: 0, map: PageMap::EMPTY };

    /// A view of the first `reach` pages.
    ///
    /// # Safety
    /// - The page map is committed for these pages, and stays so.
    #[allow(unsafe_code)]
    #[must_use]
    pub(crate) unsafe fn new(layout: &Layout, reach: usize) -> Self {
        Self { base: layout.base, reach_granules: reach << PAGE_GRANULES_LOG2, map: layout.map }
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
        self.reach_granules >> PAGE_GRANULES_LOG2
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
        let granule = address.wrapping_sub(self.base.addr()) / GRANULE_BYTES;
        if granule < self.reach_granules { Some(granule >> PAGE_GRANULES_LOG2) } else { None }
    }

    /// The page map's entry for `address`, or `None` beyond the reach, and outside the range.
    #[inline(always)]
    #[must_use]
    #[allow(unsafe_code)]
    pub(crate) fn entry(&self, address: usize) -> Option<Entry> {
        // SAFETY: the page is below the reach, so its entry is committed (`View::new`).
        self.number_of(address).map(|page| unsafe { self.map.get(page) })
    }

    /// As [`View::entry`], but `None` for an address that is no multiple of the granule, too: a rotation moves its lowest bits to the top,
    /// and so it is beyond every reach.
    #[inline(always)]
    #[must_use]
    pub(crate) fn entry_of_block(&self, address: usize) -> Option<Entry> {
        self.page_of_block(address).map(|(_, entry)| entry)
    }

    /// As [`View::entry_of_block`], with the page.
    #[inline(always)]
    #[must_use]
    #[allow(unsafe_code)]
    pub(crate) fn page_of_block(&self, address: usize) -> Option<(PageIndex, Entry)> {
        let granule = self.granule_of(address);
        let page = granule >> PAGE_GRANULES_LOG2;
        // SAFETY: the page is below the reach, so its entry is committed (`View::new`).
        (granule < self.reach_granules).then(|| (PageIndex(page as u32), unsafe { self.map.get(page) }))
    }

    /// The number of the page at an address that is a multiple of the granule; of another one, a number that no page has.
    #[inline(always)]
    #[must_use]
    pub(crate) fn number_of_aligned(&self, address: usize) -> usize {
        self.granule_of(address) >> PAGE_GRANULES_LOG2
    }

    /// The number of the granule at an address that is a multiple of it; of another one, a number beyond every reach.
    #[inline(always)]
    fn granule_of(&self, address: usize) -> usize {
        address.wrapping_sub(self.base.addr()).rotate_right(GRANULE_BYTES.ilog2())
    }

    /// The size class of a block, if it is in a small span, whoever owns it.
    #[inline(always)]
    #[must_use]
    pub(crate) fn small_class(&self, address: usize) -> Option<usize> {
        self.entry_of_block(address).and_then(Entry::class)
    }
}

#[cfg(test)]
mod tests;
