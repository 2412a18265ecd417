//! Huge pages: which large blocks ask for them.
//!
//! Under `thp=auto` they are asked for where that is known to be a gain, block by block, and never for more than the block itself:
//! - a block that grows (`realloc`): what it held was written, and the rest is going to be;
//! - a large block, if the large blocks before it were found densely written (`policy::density`): each is looked at when the next one is
//!   allocated, and when it is freed.
//!
//! A run of which huge pages were asked for is marked (`is_huge`). The request is withdrawn when the memory is given back, and when something
//! else than a large block is made of a part of the run: small spans, whose OS pages go back one by one, would pay with 2 MiB for the next
//! byte.

use crate::config::Thp;
use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::density::{self, Density, SAMPLES};
use crate::page::runs::{Extent, PurgingRun};
use crate::page::state::State;
use crate::span::{Kind, PageIndex};
use freestone_base::align;
use freestone_base::units::{PAGE_BYTES, Pages};
use freestone_os::Os;

/// Whether a block is to get huge pages, and how long it is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct HugePlan {
    /// Length of a huge page, if the block is to get some.
    pub(super) huge: Option<Pages>,
    /// Length of the block.
    pub(super) pages: Pages,
}

impl<O: Os> PageHeap<O> {
    /// Size in bytes of the huge pages that are given on request; 0 when there are none, or nothing may be asked (a file, and `mincore`).
    fn huge_page_bytes(&self) -> usize {
        if self.settings.sandbox() { 0 } else { self.os.huge_page_bytes() }
    }

    /// The length of a huge page, if a block with `room` pages should get some when it is dense.
    pub(super) fn huge_page_for(&self, room: Pages) -> Option<Pages> {
        if self.settings.thp() != Thp::Auto || !density::may_have_huge_pages(room) {
            return None;
        }
        density::huge_page_for(room, self.huge_page_bytes())
    }

    /// Whether a block of `pages` is to get huge pages, because blocks like it turned out dense.
    pub(super) fn huge_plan(&self, pages: Pages) -> HugePlan {
        let Some(huge) = self.huge_page_for(pages) else { return HugePlan { huge: None, pages } };
        let mut state = self.state.lock();
        let last = state.unsampled.take().and_then(|page| {
            let run = state.runs.record(page);
            // Whose run it is now does not matter, nor whether it is mapped: the kernel is asked, and nothing is read.
            self.sample(page, run.n_pages(), run.kind.get())
        });
        state.density.learn(last);
        HugePlan { huge: state.density.is_enough().then_some(huge), pages: density::rounded(pages, huge) }
    }

    /// How densely a large block was written; `None` if it is too short to say anything about others.
    pub(super) fn sample_density(&self, block: &OwnedRun) -> Option<Density> {
        let record = self.record(block);
        self.sample(block.page(), record.n_pages(), record.kind.get())
    }

    /// As [`PageHeap::sample_density`], of the pages of any run.
    fn sample(&self, page: PageIndex, pages: Pages, kind: Kind) -> Option<Density> {
        if kind != Kind::Large {
            return None;
        }
        self.huge_page_for(pages)?;
        let start = |sample| self.layout().page_start(page + density::page_of_sample(pages, sample));
        Some(Density::of_samples((0..SAMPLES).filter(|&sample| self.os.is_resident(start(sample))).count()))
    }

    /// Asks for huge pages behind the pages of a large block from `from` on that make whole ones.
    pub(super) fn ask_for_huge_pages(&self, block: &OwnedRun, from: Pages) {
        let (extent, huge) = (self.extent(block), self.huge_page_bytes());
        let start = self.start(extent);
        let first = align::down(start.addr() + from.to_bytes().0, huge).max(align::up(start.addr(), huge));
        let end = align::down(start.addr() + extent.bytes(), huge);
        if first < end && self.os.advise_huge(start.wrapping_add(first - start.addr()), end - first, true).is_ok() {
            self.record(block).is_huge.set(true);
        }
    }

    /// As many pages as `pages` has, and as many more as are in the last one's huge page.
    pub(super) fn to_huge_page_end(&self, pages: Extent) -> Pages {
        let start = self.start(pages).addr();
        let end = align::up(start + pages.bytes(), self.huge_page_bytes().max(PAGE_BYTES));
        Pages::in_bytes((end - start) as u64)
    }

    /// Withdraws the request for huge pages in memory that was purged; whether that worked.
    pub(super) fn forget_huge_pages(&self, run: &PurgingRun) -> bool {
        self.withdraw(run.extent())
    }

    /// Withdraws the request for huge pages in a large block; whether that worked.
    pub(super) fn forget_huge_pages_of(&self, block: &OwnedRun) -> bool {
        self.withdraw(self.extent(block))
    }

    /// Withdraws the request for huge pages in a free run, of which something else than a large block is going to be made. Where the kernel
    /// declines the run stays marked.
    pub(super) fn end_huge(&self, state: &State, page: PageIndex) {
        let record = state.runs.record(page);
        if record.is_huge.get() && record.kind.get().is_free_and_mapped() {
            let withdrawn = self.withdraw(state.runs.run_at(page));
            record.is_huge.set(!withdrawn);
        }
    }

    /// Withdraws the request for huge pages in mapped pages; whether that worked. There is none unless `thp=auto`.
    fn withdraw(&self, pages: Extent) -> bool {
        self.settings.thp() != Thp::Auto || self.os.advise_huge(self.start(pages), pages.bytes(), false).is_ok()
    }
}

#[cfg(test)]
mod tests;
