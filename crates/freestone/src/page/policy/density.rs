//! Density: whether large blocks are written densely enough for huge pages.
//!
//! A huge page costs one page fault instead of 512, and 2 MiB of memory for the first byte written in it. Large blocks are taken for dense
//! once one was seen to be, and long ones before any was looked at; one that was written less than half ends that, and two dense ones in a row restore it. So a program of
//! sparse tables, or of stacks, wastes memory for none of them, or for one that is long or comes after buffers.

use freestone_base::units::{PAGE_BYTES, Pages};

/// Large blocks of fewer huge pages than this gain little.
const HUGE_PAGES_LEAST: usize = 2;

/// The least size of a huge page in pages: 2 MiB. The kernel's size is not read if a block is shorter than [`HUGE_PAGES_LEAST`]
/// of these.
const HUGE_PAGE_PAGES_LEAST: usize = 32;

/// OS pages of a large block that are sampled.
pub(in crate::page) const SAMPLES: usize = 4;

/// The density of a block all of whose samples have memory.
const FULL: u32 = 256;

/// Large blocks get huge pages from this density on.
const DENSE_ENOUGH: u32 = FULL * 3 / 4;

/// Blocks of so many pages (64 MiB) get huge pages if none was sampled: where one is written in part, the last huge page of that part is little beside it, and a
/// program may have no other.
const LONG_PAGES: u32 = 1024;

/// Blocks long enough for huge pages are rounded up to whole ones if that adds at most one part in this many. They are rounded even if they
/// get none, so that equal requests have equal usable sizes. (Pages that are not written have no memory.)
const ROUND_SHARE: u32 = 8;

/// How densely recent large blocks were written: an average in which the last one counts half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Density(u32);

impl Density {
    /// No block was sampled. One that was written everywhere is enough for huge pages. (That it comes about in another way is rare, and harmless.)
    pub(in crate::page) const UNKNOWN: Self = Self(FULL / 2 + 1);

    /// Every page of every block was written.
    #[cfg(test)]
    pub(in crate::page) const FULL: Self = Self(FULL);

    /// The density of a block of whose samples `resident` have memory.
    pub(in crate::page) fn of_samples(resident: usize) -> Self {
        Self((resident * FULL as usize / SAMPLES) as u32)
    }

    /// Takes one more block into account, if it was sampled.
    pub(in crate::page) fn learn(&mut self, block: Option<Self>) {
        if let Some(block) = block {
            self.0 = (self.0 + block.0).div_ceil(2);
        }
    }

    /// Whether blocks of `pages` are dense enough for huge pages.
    pub(in crate::page) fn is_enough(self, pages: Pages) -> bool {
        self.0 >= DENSE_ENOUGH || (self == Self::UNKNOWN && pages.0 >= LONG_PAGES)
    }
}

/// Whether a block of `pages` is long enough for huge pages of any size: if not, the kernel's size need not be read.
pub(in crate::page) fn may_have_huge_pages(pages: Pages) -> bool {
    pages.0 as usize >= HUGE_PAGES_LEAST * HUGE_PAGE_PAGES_LEAST
}

/// The length of a huge page of `huge_page_bytes`, if a block of `pages` is long enough for some. `None` if there are none.
pub(in crate::page) fn huge_page_for(pages: Pages, huge_page_bytes: usize) -> Option<Pages> {
    let huge = Pages::in_bytes(huge_page_bytes as u64);
    (huge > Pages::ZERO && huge.0 as usize * HUGE_PAGES_LEAST <= pages.0 as usize).then_some(huge)
}

/// Where in a block of `pages` the OS page of a sample starts: they lie about in the middle of equal parts, and in different OS pages of their page, for tables are
/// often written at regular places.
pub(in crate::page) fn offset_of_sample(pages: Pages, sample: usize, os_page_bytes: usize) -> usize {
    let page = (2 * sample + 1) * pages.0 as usize / (2 * SAMPLES);
    (page * PAGE_BYTES) + (2 * sample + 3) * os_page_bytes % PAGE_BYTES
}

/// The length of a block of `pages` that may get huge pages.
pub(in crate::page) fn rounded(pages: Pages, huge: Pages) -> Pages {
    match pages.0.checked_next_multiple_of(huge.0) {
        Some(rounded) if rounded - pages.0 <= pages.0 / ROUND_SHARE => Pages(rounded),
        _ => pages,
    }
}

#[cfg(test)]
mod tests;
