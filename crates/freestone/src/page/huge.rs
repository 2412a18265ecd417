//! Huge pages: which large blocks get them.
#![allow(unsafe_code)]
//!
//! A huge page costs one fault instead of 512, and 2 MiB of memory for the first byte written in it. Under `thp=auto` they are asked for
//! where that is known to be a gain, block by block, and never for more than the block itself:
//! - a block that grows (`realloc`): what it held was written, and the rest is going to be;
//! - a large block, unless the large blocks before it were found hardly written: each is looked at when the next one is asked for, and
//!   when it is freed. So a program of sparse tables, or of stacks, pays for one of them; a program of buffers pays for none.
//!
//! Pages that were asked for are remembered in the run (`is_huge`). The request is taken back when the memory is given back, and when
//! something else than a large block is made of a part of the run: small spans, whose OS pages go back one by one, would pay with 2 MiB
//! for the next byte.
//!
//! # Safety
//! As stated at each function.

use crate::config::Thp;
use crate::page::PageHeap;
use crate::page::state::State;
use crate::span::{Kind, Layout, Span};
use freestone_base::align;
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};
use freestone_os::Os;

/// Blocks of fewer huge pages than this gain little.
const HUGE_PAGES_LEAST: usize = 2;

/// OS pages of a freed block that are looked at.
const SAMPLES: usize = 4;

/// All of a block's samples had memory.
pub(super) const DENSE: u32 = 256;

/// Large blocks are thought dense from here on: they are at first, one that was written less than half takes that back, and two dense
/// ones in a row restore it.
const DENSE_ENOUGH: u32 = DENSE * 3 / 4;

/// Blocks that may get huge pages are made whole ones long if that adds at most this part to them: also those that do not get them, so that
/// equal requests have equal usable sizes. (What is not written has no memory.)
const ROUND_SHARE: u32 = 8;

impl<O: Os> PageHeap<O> {
    /// Size in bytes of the huge pages that are given on request; 0 when there are none, or nothing may be asked (a file, and `mincore`).
    fn huge_page_bytes(&self) -> usize {
        if self.settings.sandbox() { 0 } else { self.os.huge_page_bytes() }
    }

    /// Pages of a huge page, if a block with `n_pages` of room should get them when it is dense; or 0.
    pub(super) fn huge_pages_for(&self, n_pages: u32) -> u32 {
        if self.settings.thp() != Thp::Auto || (n_pages as usize) < HUGE_PAGES_LEAST << (21 - PAGE_BYTES_LOG2) {
            return 0;
        }
        let pages = self.huge_page_bytes() >> PAGE_BYTES_LOG2;
        if pages * HUGE_PAGES_LEAST > n_pages as usize { 0 } else { pages as u32 }
    }

    /// [`PageHeap::huge_pages_for`], if blocks like this one turned out dense; and how long the block is to be then.
    pub(super) fn huge_pages_by_experience(&self, n_pages: u32) -> (u32, u32) {
        let huge_pages = self.huge_pages_for(n_pages);
        if huge_pages == 0 {
            return (0, n_pages);
        }
        let mut state = self.state.lock();
        let layout = self.layout();
        let last = match core::mem::take(&mut state.last_large) {
            0 => None,
            // SAFETY: the record of a page that was in use once is committed. Whose run it is now does not matter, nor whether it is
            // mapped: the kernel is asked, nothing is read.
            page => unsafe { self.sample_density(&*layout.record(page), page) },
        };
        state.learn_density(last);
        let rounded = n_pages.next_multiple_of(huge_pages);
        let n_pages = if rounded - n_pages <= n_pages / ROUND_SHARE { rounded } else { n_pages };
        (if state.density < DENSE_ENOUGH { 0 } else { huge_pages }, n_pages)
    }

    /// Asks for huge pages behind those of a large block's pages `from..to` that make whole ones.
    ///
    /// # Safety
    /// - `page` starts a large block of `to` pages that is the caller's.
    pub(super) unsafe fn ask_for_huge_pages(&self, page: u32, from: u32, to: u32) {
        let (layout, huge) = (self.layout(), self.huge_page_bytes());
        let start = layout.page_start(page);
        let first =
            align::down(start.addr() + ((from as usize) << PAGE_BYTES_LOG2), huge).max(align::up(start.addr(), huge));
        let end = align::down(start.addr() + ((to as usize) << PAGE_BYTES_LOG2), huge);
        if first < end {
            // SAFETY: the range lies in the caller's block.
            unsafe {
                let at = start.wrapping_add(first - start.addr());
                if self.os.advise_huge(at, end - first, true).is_ok() {
                    (*layout.record(page)).is_huge.set(true);
                }
            }
        }
    }

    /// `n_pages` from `page` on, and as many more as are in the last one's huge page.
    pub(super) fn to_huge_page_end(&self, page: u32, n_pages: u32) -> u32 {
        let huge = self.huge_page_bytes().max(PAGE_BYTES);
        let start = self.layout().page_start(page).addr();
        let end = align::up(start + ((n_pages as usize) << PAGE_BYTES_LOG2), huge);
        u32::try_from((end - start) >> PAGE_BYTES_LOG2).unwrap_or(n_pages)
    }

    /// Takes the request for huge pages back; whether that worked.
    ///
    /// # Safety
    /// - `page` starts a run of `n_pages` that is the caller's, or free and the lock is held.
    pub(super) unsafe fn forget_huge_pages(&self, page: u32, n_pages: u32) -> bool {
        let bytes = (n_pages as usize) << PAGE_BYTES_LOG2;
        if self.settings.thp() != Thp::Auto {
            return true;
        }
        // SAFETY: the caller's promise.
        unsafe { self.os.advise_huge(self.layout().page_start(page), bytes, false) }.is_ok()
    }

    /// Takes the request for huge pages in a free run back, for something else than a large block is going to be made of it.
    ///
    /// # Safety
    /// - `page` starts a free run; under the lock.
    pub(super) unsafe fn end_huge(&self, layout: &Layout, page: u32) {
        // SAFETY: the caller's promise. Where the kernel declines the run stays marked.
        unsafe {
            let record = &*layout.record(page);
            if record.is_huge.get() {
                record.is_huge.set(!self.forget_huge_pages(page, record.pages.get()));
            }
        }
    }

    /// How densely a large block was written, in parts of [`DENSE`]; `None` if it is too small to say anything about others.
    /// (With huge pages one byte looks like 2 MiB; a block that was hardly touched still shows.)
    ///
    /// # Safety
    /// - `record` is that of the run at `page`, which is the caller's; or the lock is held.
    pub(super) unsafe fn sample_density(&self, record: &Span, page: u32) -> Option<u32> {
        let n_pages = record.pages.get();
        if record.kind.get() != Kind::Large || self.huge_pages_for(n_pages) == 0 {
            return None;
        }
        let start = self.layout().page_start(page);
        let page_in_the_middle = |sample| (2 * sample + 1) * n_pages as usize / (2 * SAMPLES);
        let resident = (0..SAMPLES)
            .filter(|&sample| self.os.is_resident(start.wrapping_add(page_in_the_middle(sample) * PAGE_BYTES)))
            .count();
        Some((resident * DENSE as usize / SAMPLES) as u32)
    }
}

impl State {
    /// Remembers how dense a block was; the last one counts half.
    pub(super) fn learn_density(&mut self, density: Option<u32>) {
        if let Some(density) = density {
            self.density = (self.density + density).div_ceil(2);
        }
    }
}
