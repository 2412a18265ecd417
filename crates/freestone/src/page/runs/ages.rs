//! The dirty runs, linked in the order of their ages.
//!
//! ```text
//! oldest ─▶ run ⇄ run ⇄ run ◀─ youngest
//! ```

use crate::page::runs::records::Records;
use crate::span::PageIndex;
use freestone_base::units::Moment;

/// See the module header. The links are `older` and `younger` in the records.
#[derive(Debug)]
pub(super) struct AgeList {
    oldest: PageIndex,
    youngest: PageIndex,
}

impl AgeList {
    /// No runs.
    pub(super) const fn empty() -> Self {
        Self { oldest: PageIndex::NONE, youngest: PageIndex::NONE }
    }

    /// The oldest run.
    pub(super) fn oldest(&self) -> Option<PageIndex> {
        self.oldest.some()
    }

    /// The youngest run.
    pub(super) fn youngest(&self) -> Option<PageIndex> {
        self.youngest.some()
    }

    /// The runs, oldest first.
    pub(super) fn iter<'a>(&self, records: &'a Records) -> impl Iterator<Item = PageIndex> + use<'a> {
        core::iter::successors(self.oldest(), |page| records.get(*page).younger.get().some())
    }

    /// Links a run that has been dirty since `since` behind the next older one; where that is not known, it is looked for from the young end, which is nearly
    /// always its place.
    pub(super) fn insert(&mut self, records: &Records, page: PageIndex, since: Moment, older: Option<PageIndex>) {
        let older = older.unwrap_or_else(|| {
            let mut older = self.youngest;
            while older != PageIndex::NONE && records.get(older).dirty_since().is_after(since) {
                older = records.get(older).older();
            }
            older
        });
        let younger = if older == PageIndex::NONE { self.oldest } else { records.get(older).younger.get() };
        let run = records.get(page);
        run.dirty_since_ms.set(since.0);
        run.set_older(older);
        run.younger.set(younger);
        match older.some() {
            None => self.oldest = page,
            Some(older) => records.get(older).younger.set(page),
        }
        match younger.some() {
            None => self.youngest = page,
            Some(younger) => records.get(younger).set_older(page),
        }
    }

    /// Unlinks a run.
    pub(super) fn remove(&mut self, records: &Records, page: PageIndex) {
        let run = records.get(page);
        let (older, younger) = (run.older(), run.younger.get());
        match older.some() {
            None => self.oldest = younger,
            Some(older) => records.get(older).younger.set(younger),
        }
        match younger.some() {
            None => self.youngest = older,
            Some(younger) => records.get(younger).set_older(older),
        }
    }
}
