//! Expansion: makes clean runs. Commits more pages at the high-water mark; where address space is short, unmaps clean runs that are too short
//! and maps unmapped ones again.
//!
//! Clean runs stay mapped: they cost nothing but address space. Where that is limited (`ulimit -v`) they are unmapped when the kernel refuses
//! more, longest run first, and mapped again when they are needed, also those between clean ones that are too short. An unmapped run is called *reserved*.
//! So are stuck runs, whose memory the kernel kept when it was offered: what is locked goes with its mapping.
//!
//! Where mappings are charged (`ulimit -v` and `-d`, `vm.overcommit_memory=2`), long clean runs are unmapped as well whenever memory was purged: the program may need
//! the addresses for something else, such as the stacks of threads, and other processes what the system may promise. So are long stuck runs, once the kernel has kept
//! one.

use crate::config::Purge;
use crate::page::page_heap::PageHeap;
use crate::page::policy::growth;
use crate::page::runs::Extent;
use crate::page::state::State;
use crate::span::Kind;
use freestone_base::sync::Ordering;
use freestone_base::units::Pages;
use freestone_os::{Errno, Os};

/// Shorter clean runs stay mapped: 1 MiB.
const UNMAPPED_LEAST: Pages = Pages(16);

/// No run is unmapped that is shorter than this part of the heap: each may cost the process a mapping, of which there are 65,530.
const UNMAPPED_PART: u32 = 2048;

impl<O: Os> PageHeap<O> {
    /// Makes a clean run of at least `pages`: from a reserved run, at the high-water mark, or, if the kernel refuses, there after unmapping clean
    /// runs that are too short.
    pub(super) fn make_clean(&self, state: &mut State, pages: Pages) -> Option<()> {
        self.map_again(state, pages).or_else(|| self.expand(state, pages)).or_else(|| {
            self.unmap(state, pages)?;
            self.map_again(state, pages).or_else(|| self.expand(state, pages))
        })
    }

    /// Unmaps long free runs if they cost more than addresses: mappings are charged, or the kernel has kept memory.
    #[inline]
    pub(super) fn unmap_if_charged(&self, state: &mut State) {
        if self.unmaps.load(Ordering::Relaxed) {
            self.unmap_long(state);
        }
    }

    /// Unmaps long clean runs, and those whose memory the kernel has kept.
    #[cold]
    #[inline(never)]
    fn unmap_long(&self, state: &mut State) {
        let least = UNMAPPED_LEAST.max(Pages(state.runs.high_water().0 / UNMAPPED_PART));
        // With `purge=free`, the kernel takes them when it needs them.
        let keeps = self.settings.purge() == Purge::DontNeed;
        let long = |run: Option<Extent>| run.filter(|run| run.pages >= least);
        while let Some(run) =
            long(state.runs.longest_clean()).or_else(|| long(state.runs.long_stuck()).filter(|_| keeps))
        {
            let had_memory = state.runs.record(run.first).kind.get() == Kind::Stuck;
            if !self.release(state, run) {
                return;
            }
            if had_memory {
                self.purges.count(true, run.bytes());
            }
        }
    }

    /// Makes a clean run of at least `pages` of a reserved run that is long enough, or of reserved and clean runs beside each other that are long enough
    /// together. Where another part of the program has mapped something, pages are given up, and the next runs are tried.
    fn map_again(&self, state: &mut State, pages: Pages) -> Option<()> {
        while state.runs.find_clean(pages).is_none() {
            let whole = state.runs.find_reserved(pages).map(|page| Extent::new(page, pages));
            let part = whole.or_else(|| state.runs.find_gap(pages))?;
            match self.commit_reserved(state, part) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Unmaps clean runs, then stuck ones, the longest first, until `pages` are unmapped or none is left. `None` if there was nothing to unmap.
    fn unmap(&self, state: &mut State, pages: Pages) -> Option<()> {
        let mut unmapped = Pages::ZERO;
        while unmapped < pages {
            let Some(run) = state.runs.longest_clean().or_else(|| state.runs.long_stuck()) else { break };
            if !self.release(state, run) {
                break;
            }
            unmapped += run.pages;
        }
        (unmapped > Pages::ZERO).then_some(())
    }

    /// Commits more pages at the high-water mark, so that a clean run of at least `pages` ends there.
    ///
    /// Where another part of the program has mapped something, commits what lies before it and steps over the pages that it touches: one,
    /// two, four, as long as the next one is taken as well. So the pages lost are fewer than those of the foreign mapping.
    fn expand(&self, state: &mut State, pages: Pages) -> Option<()> {
        let arena = Pages(state.runs.high_water().0);
        let (mut wanted, mut step) = (growth::arena_step(arena, pages), Pages(1));
        loop {
            let lacks = pages.saturating_sub(state.runs.clean_tail());
            let left = Pages::saturating_from(self.layout().n_pages as u64) - Pages(state.runs.high_water().0);
            if lacks == Pages::ZERO {
                return Some(());
            }
            if lacks > left {
                return None;
            }
            wanted = wanted.min(left);
            match self.commit_next(state, wanted) {
                Ok(()) => step = Pages(1),
                Err(Errno::EXIST) if wanted > Pages(1) => wanted = Pages(wanted.0 / 2),
                Err(Errno::EXIST) => {
                    if !self.step_over(state, step.min(left)) {
                        return None;
                    }
                    (wanted, step) = (pages, step.saturating_add(step));
                }
                Err(_) if wanted > lacks => wanted = Pages(wanted.0 / 2).max(lacks),
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
