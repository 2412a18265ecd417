//! The window: the stretch of address space that everything lives in.
//!
//! ```text
//! base                                          meta
//!  │ pages 0 … n-1, 64 KiB each                   │ records     │ bitmaps        │ page map
//!  ├──────────────────────────────────────────────┼─────────────┼────────────────┼─────────────┤
//!   n × 65536                                       n × 64        n × 512          n × 4  bytes
//! ```
//!
//! Nothing here is mapped by being in the window: arenas are committed page by page as the page heap grows, records and
//! bitmaps in chunks of [`CHUNK_PAGES`] along with them, the page map whole but lazily (the kernel gives it memory where it
//! is written).
//!
//! Invariants: `n` pages and their metadata fit between base and end; page 0 is never used, so that 0 can mean "none".

use crate::span::page_map::PageMap;
use crate::span::record::Span;
use core::mem::size_of;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};

/// Records and bitmaps are committed for this many pages at a time: 64 MiB of pages, 576 KiB of metadata addresses.
pub const CHUNK_PAGES: usize = 1024;

/// Bytes of bitmap kept for each page: one bit a granule.
pub const BITMAP_BYTES: usize = 512;

/// Bytes of window for each page: itself, its record, its bitmap, its page map entry.
const WINDOW_BYTES_PER_PAGE: usize = PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES + size_of::<u32>();

/// Fewest pages a window is worth having with: one chunk.
pub const PAGES_LEAST: usize = CHUNK_PAGES;

/// Where things are. Copied into every thread heap, for the hot paths read it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Layout {
    /// Address of page 0.
    pub base: *mut u8,
    /// Number of pages.
    pub n_pages: usize,
    /// Entry of page 0.
    pub map: PageMap,
}

// SAFETY: a `Layout` is three numbers; what may be done at these addresses is each user's to justify.
#[allow(unsafe_code)]
unsafe impl Send for Layout {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Layout {}

impl Layout {
    /// No window: every address is outside.
    pub const EMPTY: Self = Self { base: core::ptr::null_mut(), n_pages: 0, map: PageMap::EMPTY };

    /// Lays out a window of `window_bytes` at `base`, or `None` if that is too small to be of use.
    #[must_use]
    pub fn new(base: *mut u8, window_bytes: usize) -> Option<Self> {
        let n_pages = (window_bytes / WINDOW_BYTES_PER_PAGE) & !(CHUNK_PAGES - 1);
        // Page numbers are kept in 32 bits.
        if n_pages < PAGES_LEAST || n_pages > u32::MAX as usize {
            return None;
        }
        let map_offset = n_pages * (PAGE_BYTES + size_of::<Span>() + BITMAP_BYTES);
        Some(Self { base, n_pages, map: PageMap::at(base.wrapping_add(map_offset)) })
    }

    /// Bytes of the page map.
    #[must_use]
    pub fn map_bytes(&self) -> usize {
        self.n_pages * size_of::<u32>()
    }

    /// The page that holds `address`, or `None` outside the window.
    #[inline(always)]
    #[must_use]
    pub fn page_of(&self, address: usize) -> Option<usize> {
        let page = address.wrapping_sub(self.base.addr()) >> PAGE_BYTES_LOG2;
        if page < self.n_pages { Some(page) } else { None }
    }

    /// The size class of a block, if it is in a small span, whoever owns it.
    #[inline(always)]
    #[must_use]
    #[allow(unsafe_code)]
    pub fn small_class(&self, address: usize) -> Option<usize> {
        // SAFETY: inside the window the map can be read.
        self.page_of(address).and_then(|page| unsafe { self.map.get(page) }.class())
    }

    /// Start of a page.
    #[inline]
    #[must_use]
    pub fn page_start(&self, page: u32) -> *mut u8 {
        self.base.wrapping_add((page as usize) << PAGE_BYTES_LOG2)
    }

    /// Record of a page. Readable once the page's chunk is committed.
    #[inline]
    #[must_use]
    pub fn record(&self, page: u32) -> *mut Span {
        self.records().wrapping_add(page as usize)
    }

    /// The page that `record` describes.
    #[inline]
    #[must_use]
    pub fn page_of_record(&self, record: *const Span) -> u32 {
        ((record.addr() - self.records().addr()) / size_of::<Span>()) as u32
    }

    /// First word of a page's bitmap. Usable once the page's chunk is committed.
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
