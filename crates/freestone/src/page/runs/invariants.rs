//! The invariants of free runs, walked.

use crate::page::runs::run_set::RunSet;
use crate::page::runs::{Extent, Runs};
use crate::span::{Kind, PageAccess, PageIndex};
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
        self.check_guards()?;
        self.check_ages()
    }

    fn check_guards(&self) -> Result<(), Broken> {
        for (run, record) in self.iter() {
            let (kind, guards) = (record.kind.get(), self.guards_among(run));
            if kind == Kind::Guard {
                hold(run.pages == Pages(1) && guards == 1, "a guard is one page without access", run.first)?;
                hold(record.has_guards.get(), "a guard's record says that it is one", run.first)?;
                let has_free_sides = self.state_between(run.first).is_some();
                hold(!has_free_sides, "a guard is beside a run that is in use", run.first)?;
            } else if kind.is_free_and_mapped() || kind == Kind::Purging {
                let known = record.has_guards.get() || guards == 0;
                hold(known, "a free run's record says whether there may be guards in it", run.first)?;
            } else {
                hold(guards == 0, "no guard is in a run in use, or in one that is not mapped", run.first)?;
            }
        }
        Ok(())
    }

    /// Pages of `run` that cannot be accessed.
    fn guards_among(&self, run: Extent) -> usize {
        (0..run.pages.0).filter(|&at| self.record(run.first + Pages(at)).access.get() != PageAccess::Open).count()
    }

    fn check_set(&self, set: &RunSet, kinds: &[Kind]) -> Result<(), Broken> {
        let mut in_set = Pages::ZERO;
        for page in set.iter(&self.records) {
            let run = self.record(page);
            hold(kinds.contains(&run.kind.get()), "a set has runs of its kind", page)?;
            in_set += self.n_open(self.run_at(page));
        }
        let counted: u32 = kinds.iter().map(|&kind| self.counts.of(kind).0).sum();
        hold(in_set.0 == counted, "the sets have all free pages that can be accessed", PageIndex::NONE)
    }

    fn check_ages(&self) -> Result<(), Broken> {
        let mut before: Option<(PageIndex, Moment)> = None;
        for page in self.ages.iter(&self.records) {
            let run = self.record(page);
            let older = before.map_or(PageIndex::NONE, |(older, _)| older);
            hold(run.kind.get() == Kind::Dirty && run.older() == older, "ages link the dirty runs", page)?;
            hold(before.is_none_or(|(_, since)| !since.is_after(run.dirty_since())), "ages are in order", page)?;
            before = Some((page, run.dirty_since()));
        }
        let last = before.map(|(page, _)| page);
        hold(self.ages.youngest() == last, "the youngest run is the last", last.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
