//! Growing: more pages at the frontier, and, where address space is short, in the place of clean ones that were given up.
#![allow(unsafe_code)]
//!
//! Clean runs stay mapped: they cost nothing but address space. Where that is limited (`ulimit -v`) it is unmapped when the kernel refuses
//! more, longest run first, and mapped again when it is needed. In between such runs are *reserved*.
//!
//! # Safety
//! Under the page heap's lock; pages beyond the frontier are nobody's.

use crate::config::{self, Thp};
use crate::page::PageHeap;
use crate::page::state::{Free, State};
use crate::span::{Kind, Layout};
use freestone_base::sync::Ordering;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::{Errno, Os, Prefault};

/// The arena grows by at least this much: 1 MiB, so that a small process stays small.
const GROW_PAGES_LEAST: u32 = 16;

/// The arena grows by at most this much beyond what is asked for: 64 MiB.
const GROW_PAGES_MOST: u32 = 1024;

/// The arena grows by this part of what it has, so that the number of system calls stays logarithmic.
const GROW_SHARE: u32 = 8;

impl<O: Os> PageHeap<O> {
    /// Sees to a clean run of at least `n_pages` where there is none: from what is reserved, at the frontier, or there at the cost of clean
    /// runs that are too short.
    pub(super) fn make_clean(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<()> {
        self.map_again(state, layout, n_pages).or_else(|| self.grow(state, layout, n_pages)).or_else(|| {
            self.unmap_clean(state, layout, n_pages)?;
            self.map_again(state, layout, n_pages).or_else(|| self.grow(state, layout, n_pages))
        })
    }

    /// Commits `n_pages` of a reserved run that is long enough. Where somebody else has mapped something meanwhile, they are given up.
    fn map_again(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<()> {
        loop {
            let page = state.reserved.find(layout, n_pages)?;
            let (start, bytes) = (layout.page_start(page), (n_pages as usize) << PAGE_BYTES_LOG2);
            // SAFETY: the pages are free and not mapped; committed memory is zero.
            unsafe {
                match self.os.commit(start, bytes, false) {
                    Ok(()) => {
                        self.prepare(start, bytes);
                        state.turn(layout, page, n_pages, Free::CLEAN);
                        return Some(());
                    }
                    Err(Errno::EXIST) => {
                        state.turn(layout, page, n_pages, Free { kind: Kind::None, ..Free::CLEAN });
                    }
                    Err(_) => return None,
                }
            }
        }
    }

    /// Unmaps clean runs, the longest first, of `n_pages` together if there are as many. `None` if there was nothing to unmap.
    fn unmap_clean(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<()> {
        let mut unmapped = 0;
        while unmapped < n_pages {
            let Some((page, run_pages)) = state.clean.longest(layout).next() else { break };
            // SAFETY: the run is free; nobody uses its memory.
            unsafe {
                let bytes = (run_pages as usize) << PAGE_BYTES_LOG2;
                if self.os.release(layout.page_start(page), bytes).is_err() {
                    break;
                }
                state.turn(layout, page, run_pages, Free { kind: Kind::Reserved, ..Free::CLEAN });
            }
            unmapped += run_pages;
        }
        (unmapped > 0).then_some(())
    }

    /// Commits more pages at the frontier, so that a clean run of at least `n_pages` ends there.
    ///
    /// Where somebody else has mapped something, what lies before it is committed, and the pages it touches are stepped over: one, two,
    /// four, as long as the next one is taken as well. So less is lost than what is in the way is long.
    fn grow(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<()> {
        let generous = (state.frontier / GROW_SHARE).clamp(GROW_PAGES_LEAST, GROW_PAGES_MOST);
        let (mut wanted, mut step) = (generous.max(n_pages), 1);
        loop {
            let lacks = n_pages.saturating_sub(state.clean_tail(layout));
            let left = u32::try_from(layout.n_pages).unwrap_or(u32::MAX) - state.frontier;
            if lacks == 0 {
                return Some(());
            }
            if lacks > left {
                return None;
            }
            wanted = wanted.min(left);
            match self.commit(state, layout, wanted) {
                Ok(()) => step = 1,
                Err(Errno::EXIST) if wanted > 1 => wanted /= 2,
                Err(Errno::EXIST) => {
                    self.step_over(state, layout, step.min(left))?;
                    (wanted, step) = (n_pages, step.saturating_mul(2));
                }
                Err(_) if wanted > lacks => wanted = (wanted / 2).max(lacks),
                Err(_) => return None,
            }
        }
    }

    /// Steps over `n_pages` at the frontier, the first of which somebody else has mapped.
    fn step_over(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Option<()> {
        self.commit_metadata(state, layout, n_pages).ok()?;
        // SAFETY: under the lock; the pages have never been used, and their records are committed.
        unsafe { state.skip(layout, n_pages) };
        Some(())
    }

    /// Commits the next `n_pages`, as a clean run.
    pub(super) fn commit(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Result<(), Errno> {
        self.commit_metadata(state, layout, n_pages)?;
        let from = state.frontier;
        let (start, bytes) = (layout.page_start(from), (n_pages as usize) << PAGE_BYTES_LOG2);
        // SAFETY: the pages lie in the window, beyond the frontier; committed memory is zero.
        unsafe {
            self.os.commit(start, bytes, false)?;
            self.prepare(start, bytes);
            state.frontier += n_pages;
            state.insert(layout, from, n_pages, Free::CLEAN);
        }
        Ok(())
    }

    /// Does what the options want done with new memory. Advice: when the kernel declines, the memory is as good as without.
    unsafe fn prepare(&self, start: *mut u8, bytes: usize) {
        let huge = match self.settings.thp() {
            Thp::Auto => None,
            Thp::On => Some(true),
            Thp::Off => Some(false),
        };
        let prefault = match self.settings.prefault() {
            config::Prefault::Off => None,
            config::Prefault::Touch => Some(Prefault::Touch),
            config::Prefault::WillNeed => Some(Prefault::WillNeed),
            config::Prefault::Populate => Some(Prefault::Populate),
        };
        // SAFETY: the caller has just committed the range.
        unsafe {
            if let Some(wanted) = huge {
                let _ = self.os.advise_huge(start, bytes, wanted);
            }
            if let Some(how) = prefault {
                let _ = self.os.prefault(start, bytes, how);
            }
        }
    }

    /// Sees to the metadata of the next `n_pages`.
    fn commit_metadata(&self, state: &mut State, layout: &Layout, n_pages: u32) -> Result<(), Errno> {
        let needed = state.frontier as usize + n_pages as usize;
        state.committed.extend(&self.os, layout, needed)?;
        self.publish_reach(state, layout, needed.max(self.reach()));
        Ok(())
    }
}

impl State {
    /// Pages of the clean run that ends at the frontier.
    fn clean_tail(&self, layout: &Layout) -> u32 {
        // SAFETY: the page before the frontier is page 0, or the last of a run: it has a record, and the state is borrowed under the lock.
        unsafe {
            let last = &*layout.record(self.frontier - 1);
            if last.kind.get() != Kind::Clean {
                return 0;
            }
            (*layout.record(last.first.load(Ordering::Relaxed))).pages.get()
        }
    }
}

#[cfg(test)]
mod tests;
