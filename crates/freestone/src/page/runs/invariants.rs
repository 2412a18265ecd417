//! The invariants of free runs, walked.

use crate::page::runs::Runs;
use crate::page::runs::run_set::RunSet;
use crate::span::{Kind, PageIndex};
use freestone_base::units::{Moment, Pages};

/// An invariant that does not hold, and the page that it was seen at.
pub(crate) type Broken = (&'static str, PageIndex);

/// Names an invariant, if it does not hold.
pub(in crate::page) fn hold(condition: bool, what: &'static str, page: PageIndex) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err((what, page)) }
}

impl Runs {
    /// Checks the invariants of free runs that the module header of `runs` lists.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub(in crate::page) fn check_free(&self) -> Result<(), Broken> {
        self.check_set(&self.dirty, &[Kind::Dirty, Kind::Stuck])?;
        self.check_set(&self.clean, &[Kind::Clean])?;
        self.check_set(&self.reserved, &[Kind::Reserved])?;
        for (page, run) in self.records.iter(&self.purging) {
            hold(run.kind.get() == Kind::Purging, "the list of runs being purged has no others", page)?;
        }
        self.check_ages()
    }

    fn check_set(&self, set: &RunSet, kinds: &[Kind]) -> Result<(), Broken> {
        let mut in_set = Pages::ZERO;
        for page in set.iter(&self.records) {
            let run = self.record(page);
            hold(kinds.contains(&run.kind.get()), "a set has runs of its kind", page)?;
            in_set += run.n_pages();
        }
        let counted: u32 = kinds.iter().map(|&kind| self.counts.of(kind).0).sum();
        hold(in_set.0 == counted, "the sets have all free pages", PageIndex::NONE)
    }

    fn check_ages(&self) -> Result<(), Broken> {
        let mut before: Option<(PageIndex, Moment)> = None;
        for page in self.ages.iter(&self.records) {
            let run = self.record(page);
            let older = before.map_or(PageIndex::NONE, |(older, _)| older);
            hold(run.kind.get() == Kind::Dirty && run.older.get() == older, "ages link the dirty runs", page)?;
            hold(before.is_none_or(|(_, since)| !since.is_after(run.dirty_since())), "ages are in order", page)?;
            before = Some((page, run.dirty_since()));
        }
        let last = before.map(|(page, _)| page);
        hold(self.ages.youngest() == last, "the youngest run is the last", last.unwrap_or_default())
    }
}
