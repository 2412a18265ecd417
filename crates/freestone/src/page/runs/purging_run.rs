//! Runs whose memory the kernel is taking back, without the page heap's lock: dirty ones, and blocks that are being closed
//! (`page::address_quarantine`). The entry of the first page tells which: only a block that is being closed has one.

use crate::page::runs::{Extent, FreeState, Runs};
use crate::span::{Entry, Kind, PageIndex};
use freestone_base::units::Pages;

/// A run whose memory the kernel is taking back. The holder of this value may purge or close it without the lock.
#[derive(Debug)]
pub(in crate::page) struct PurgingRun {
    extent: Extent,
}

impl PurgingRun {
    /// Its pages.
    pub(in crate::page) fn extent(&self) -> Extent {
        self.extent
    }
}

impl Runs {
    /// Takes pages from the start of a dirty run for a purge.
    pub(in crate::page) fn begin_purge(&mut self, pages: Extent) -> PurgingRun {
        self.take(pages, Kind::Purging);
        self.records.push(&self.purging, pages.first);
        PurgingRun { extent: pages }
    }

    /// Ends a purge: the run is free.
    pub(in crate::page) fn end_purge(&mut self, run: PurgingRun, free: FreeState) {
        self.records.remove(&self.purging, run.extent.first);
        self.free(run.extent.first, free);
    }

    /// Takes the block that starts at `page` out of use, to close it.
    pub(in crate::page) fn begin_close(&mut self, page: PageIndex) -> PurgingRun {
        let run = self.end_use(page);
        self.label(run, Kind::Purging);
        self.counts.add(Kind::Purging, run.pages);
        self.records.push(&self.purging, page);
        self.set_entries(Extent::new(page, Pages(1)), Entry::CACHED);
        PurgingRun { extent: run }
    }

    /// Ends that: the block was not closed, and is in use again.
    pub(in crate::page) fn cancel_close(&mut self, run: PurgingRun) {
        let page = run.extent.first;
        self.records.remove(&self.purging, page);
        self.end_use(page);
        self.label(run.extent, Kind::Large);
        self.counts.add(Kind::Large, run.extent.pages);
        self.set_entries(Extent::new(page, Pages(1)), Entry::LARGE);
    }

    /// Ends it: the block was closed, and is quarantined.
    pub(in crate::page) fn end_close(&mut self, run: PurgingRun) {
        self.records.remove(&self.purging, run.extent.first);
        self.quarantine(run.extent.first);
    }

    /// Whether the run is a block that is being closed.
    pub(in crate::page) fn is_closing(&self, run: &PurgingRun) -> bool {
        self.entry(run.extent.first) == Entry::CACHED
    }

    /// A run that is being purged or closed, for a forked child that does not have the thread that purges it.
    pub(in crate::page) fn abandoned_purge(&self) -> Option<PurgingRun> {
        let page = self.purging.first()?;
        Some(PurgingRun { extent: self.run_at(page) })
    }
}
