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
    /// The run whose place was looked for last, or a neighbour, if that is no longer there.
    found: PageIndex,
}

impl AgeList {
    /// No runs.
    pub(super) const fn empty() -> Self {
        Self { oldest: PageIndex::NONE, youngest: PageIndex::NONE, found: PageIndex::NONE }
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

    /// Links a run that has been dirty since `since` behind the next older one; where that is not known, it is looked for.
    pub(super) fn insert(&mut self, records: &Records, page: PageIndex, since: Moment, older: Option<PageIndex>) {
        let older = older.unwrap_or_else(|| {
            let older = self.find(records, since);
            self.found = page;
            older
        });
        let younger = self.younger_than(records, older);
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

    /// The youngest run that is no younger than one that has been dirty since `since`. That is nearly always the youngest of all; but thousands of runs that were in lists
    /// come one after the other, most of them a little older than the one before, so that the place of one is beside that of the last.
    fn find(&self, records: &Records, since: Moment) -> PageIndex {
        let is_younger = |page: PageIndex| records.get(page).dirty_since().is_after(since);
        let mut place = self.youngest;
        if place != PageIndex::NONE && is_younger(place) {
            place = self.found.some().unwrap_or(place);
        }
        while place != PageIndex::NONE && is_younger(place) {
            place = records.get(place).older();
        }
        loop {
            let next = self.younger_than(records, place);
            if next == PageIndex::NONE || is_younger(next) {
                return place;
            }
            place = next;
        }
    }

    /// The next younger run, or the oldest one if there is no `older`.
    fn younger_than(&self, records: &Records, older: PageIndex) -> PageIndex {
        if older == PageIndex::NONE { self.oldest } else { records.get(older).younger.get() }
    }

    /// Unlinks a run.
    pub(super) fn remove(&mut self, records: &Records, page: PageIndex) {
        let run = records.get(page);
        let (older, younger) = (run.older(), run.younger.get());
        if self.found == page {
            self.found = older.some().unwrap_or(younger);
        }
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

#[cfg(test)]
mod tests;
