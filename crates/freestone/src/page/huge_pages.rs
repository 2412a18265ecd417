//! Huge pages: for which large blocks they are requested.
//!
//! Under `thp=auto` they are requested block by block where evidence shows that they pay, and never for more than the block itself:
//! - for a block that grows (`realloc`): what it held was written, and the rest is likely to be;
//! - for a large block, if the large blocks before it were densely written (`policy::density`): each is sampled when the next one is
//!   allocated, and when it is freed.
//!
//! Its last huge page is left out: once a byte of a huge page is written, all of it has memory, so how densely the block is written shows only there.
//! When it grows, that page was written, and is requested with what is added.
//!
//! A run with such a request is marked (`is_huge`). The request is withdrawn when the memory is given back, and when a part of the run
//! becomes something else than a large block: a small span, whose OS pages go back one by one, would get 2 MiB for the next byte
//! that is written.

use crate::config::Thp;
use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::density::{self, Density, SAMPLES};
use crate::page::policy::mappings;
use crate::page::runs::{Extent, PurgingRun};
use crate::page::state::State;
use crate::span::{Kind, PageIndex, Span};
use freestone_base::align;
use freestone_base::units::{PAGE_BYTES, Pages};
use freestone_os::Os;

/// Whether a block gets huge pages, and its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct HugePlan {
    /// Length of a huge page, if the block gets some.
    pub(super) huge: Option<Pages>,
    /// Length of the block.
    pub(super) pages: Pages,
}

impl<O: Os> PageHeap<O> {
    /// Size in bytes of the huge pages that are given on request; 0 if there are none, or in a sandbox, which forbids reading the file that
    /// has the size, and `mincore`.
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

    /// Whether a block of `pages` gets huge pages, because earlier blocks were dense.
    pub(super) fn huge_plan(&self, pages: Pages) -> HugePlan {
        let Some(huge) = self.huge_page_for(pages) else { return HugePlan { huge: None, pages } };
        let mut state = self.lock();
        let last = state.unsampled.take().and_then(|page| {
            let run = state.runs.record(page);
            // The run may have another owner now, or be unmapped: only the kernel is asked, and no memory is read.
            self.sample(page, run)
        });
        state.density.learn(last);
        HugePlan { huge: state.density.is_enough(pages).then_some(huge), pages: density::rounded(pages, huge) }
    }

    /// As if blocks that were written everywhere had been sampled.
    #[cfg(test)]
    pub(crate) fn take_blocks_for_dense(&self) {
        self.lock().density = Density::FULL;
    }

    /// How densely a large block was written; `None` if it is too short to say anything about others.
    pub(super) fn sample_density(&self, block: &OwnedRun) -> Option<Density> {
        self.sample(block.page(), self.record(block))
    }

    /// As [`PageHeap::sample_density`], of any run that starts at `page`. Of one with a request for huge pages, only the part that has none is sampled.
    fn sample(&self, page: PageIndex, run: &Span) -> Option<Density> {
        if run.kind.get() != Kind::Large {
            return None;
        }
        let whole = Extent::new(page, run.n_pages());
        let huge = self.huge_page_for(whole.pages)?;
        let sampled = if run.is_huge.get() { self.without_request(whole, huge) } else { whole };
        Some(Density::of_samples(self.n_resident_samples(self.start(sampled), sampled.pages)))
    }

    /// How many of the samples of `pages` from `start` on have memory.
    pub(super) fn n_resident_samples(&self, start: *mut u8, pages: Pages) -> usize {
        let os_page_bytes = self.os.os_page_bytes();
        let samples =
            (0..SAMPLES).map(|sample| start.wrapping_add(density::offset_of_sample(pages, sample, os_page_bytes)));
        samples.filter(|&at| self.os.is_resident(at)).count()
    }

    /// The last whole huge page of a block, for which none is requested, so that what was written of it can be told.
    fn without_request(&self, block: Extent, huge: Pages) -> Extent {
        let start = self.start(block).addr();
        let end = align::down(start + block.bytes(), huge.to_bytes().0);
        Extent::new(block.first + Pages::in_bytes((end - start) as u64) - huge, huge)
    }

    /// Requests huge pages for the whole huge pages inside a large block from `from` on; none if the kernel has none, in a
    /// sandbox, or if there could be too many of such blocks.
    pub(super) fn ask_for_huge_pages(&self, block: &OwnedRun, from: Pages) {
        let (extent, huge) = (self.extent(block), self.huge_page_bytes());
        if huge == 0 || !mappings::may_be_huge(extent.pages, self.arena()) {
            return;
        }
        let start = self.start(extent);
        // What had no request so far was written: the block grows.
        let from = (start.addr() + from.to_bytes().0).saturating_sub(if from > Pages::ZERO { huge } else { 0 });
        let first = align::down(from, huge).max(align::up(start.addr(), huge));
        let end = align::down(start.addr() + extent.bytes(), huge) - huge;
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

    /// Withdraws the request for huge pages in memory that was purged. Returns whether that worked.
    pub(super) fn forget_huge_pages(&self, run: &PurgingRun) -> bool {
        self.withdraw(run.extent())
    }

    /// Withdraws the request for huge pages in a large block. Returns whether that worked.
    pub(super) fn forget_huge_pages_of(&self, block: &OwnedRun) -> bool {
        self.withdraw(self.extent(block))
    }

    /// Withdraws the request for huge pages in a free run that becomes something else than a large block. If the kernel
    /// refuses, the run stays marked.
    pub(super) fn end_huge(&self, state: &State, page: PageIndex) {
        let record = state.runs.record(page);
        if record.is_huge.get() && record.kind.get().is_free_and_mapped() {
            let withdrawn = self.withdraw(state.runs.run_at(page));
            record.is_huge.set(!withdrawn);
        }
    }

    /// Withdraws the request for huge pages in mapped pages; it exists only under `thp=auto`. Returns whether that worked.
    fn withdraw(&self, pages: Extent) -> bool {
        self.settings.thp() != Thp::Auto || self.os.advise_huge(self.start(pages), pages.bytes(), false).is_ok()
    }
}

#[cfg(test)]
mod tests;
