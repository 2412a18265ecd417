//! Runs whose memory the kernel is taking back, without the page heap's lock.

use crate::page::runs::{Extent, FreeState, Runs};
use crate::span::Kind;

/// A run whose memory the kernel is taking back. The holder of this value may purge it without the lock.
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

    /// A run that is being purged, for a forked child that does not have the thread that purges it.
    pub(in crate::page) fn abandoned_purge(&self) -> Option<PurgingRun> {
        let page = self.purging.first()?;
        Some(PurgingRun { extent: self.run_at(page) })
    }
}
