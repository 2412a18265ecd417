//! Transitions of runs that need the kernel: mapping, unmapping and purging.
#![allow(unsafe_code)]
//!
//! ```text
//!                   commit_next
//!  never used ────────────────────▶ clean ◀───────────── purge_memory (dirty, taken out of its set)
//!                                   │   ▲
//!                           release ▼   │ commit_reserved
//!                                  reserved
//! ```
//!
//! # Safety
//! Each function states the kind of the pages that it passes to the kernel: no code uses the memory of free pages.

use crate::config::{self, Purge, Thp};
use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::held_back::{BLOCKS_MOST, Held};
use crate::page::policy::purge_bound::{PIECE_MOST, RUNS_AT_ONCE};
use crate::page::runs::{Extent, FreeState, PurgingRun, Runs};
use crate::page::state::State;
use crate::span::Kind;
use crate::span::blocks;
use crate::span::os_pages::EmptyStretches;
use crate::usage::Usage;
use core::slice;
use freestone_base::align;
use freestone_base::units::Pages;
use freestone_os::{Errno, MemoryRange, NotMoved, Os, Prefault};

impl<O: Os> PageHeap<O> {
    /// The first byte of pages.
    pub(super) fn start(&self, pages: Extent) -> *mut u8 {
        self.layout().page_start(pages.first)
    }

    /// Commits the metadata of the next `pages` beyond the high-water mark.
    fn commit_metadata(&self, state: &mut State, pages: Pages) -> Result<(), Errno> {
        state.runs.extend_metadata(&self.os, pages)?;
        let needed = state.runs.high_water() + pages;
        self.publish_reach(state, self.reach().max(needed.0 as usize));
        Ok(())
    }

    /// Commits the next `pages` beyond the high-water mark. They are clean, and the mark is behind them.
    pub(super) fn commit_next(&self, state: &mut State, pages: Pages) -> Result<(), Errno> {
        // First: metadata that was committed for pages that the kernel refuses is counted, and serves others; the other way round pages would be lost if
        // the kernel does not take them back.
        self.commit_metadata(state, pages)?;
        let next = Extent::new(state.runs.high_water(), pages);
        // SAFETY: The pages lie beyond the high-water mark: nothing of ours is mapped there. Metadata was committed for them, so they are in the
        // address range.
        unsafe { self.os.commit(self.start(next), next.bytes(), false) }?;
        self.prepare(next);
        state.runs.add(pages, FreeState::CLEAN);
        Ok(())
    }

    /// Raises the high-water mark over the next `pages`, the first of which another part of the program has mapped; `false` if there is no
    /// memory for their metadata.
    pub(super) fn step_over(&self, state: &mut State, pages: Pages) -> bool {
        let has_metadata = self.commit_metadata(state, pages).is_ok();
        if has_metadata {
            state.runs.add(pages, FreeState::FOREIGN);
        }
        has_metadata
    }

    /// Commits pages at the start of a reserved run. They are clean; or given up, if another part of the program has mapped something there.
    pub(super) fn commit_reserved(&self, state: &mut State, pages: Extent) -> Result<(), Errno> {
        debug_assert_eq!(state.runs.record(pages.first).kind.get(), Kind::Reserved);
        // SAFETY: The pages are reserved: free and not mapped by us.
        match unsafe { self.os.commit(self.start(pages), pages.bytes(), false) } {
            Ok(()) => {
                self.prepare(pages);
                state.runs.turn(pages, FreeState::CLEAN);
                Ok(())
            }
            Err(errno) => {
                if errno == Errno::EXIST {
                    state.runs.turn(pages, FreeState::FOREIGN);
                }
                Err(errno)
            }
        }
    }

    /// Unmaps a clean or stuck run; it is reserved. `false` if the kernel refuses.
    pub(super) fn release(&self, state: &mut State, run: Extent) -> bool {
        debug_assert!(matches!(state.runs.record(run.first).kind.get(), Kind::Clean | Kind::Stuck));
        // SAFETY: The run is clean or stuck: free and mapped, and no code uses its memory.
        let released = unsafe { self.os.release(self.start(run), run.bytes()) }.is_ok();
        if released {
            Self::forget_guards(state, run);
            state.runs.turn(run, FreeState::RESERVED);
        }
        released
    }

    /// Prefaults and advises memory that was just committed, as the options say. If the kernel refuses, the memory is still usable.
    fn prepare(&self, pages: Extent) {
        self.advise(pages);
        let prefault = self.settings.prefault();
        if prefault != config::Prefault::Off {
            // With an arm for each, the compiler makes a table of jumps, beyond the part of the library that small programs use.
            let how = match prefault {
                config::Prefault::Populate => Prefault::Populate,
                config::Prefault::WillNeed => Prefault::WillNeed,
                _ => Prefault::Touch,
            };
            // SAFETY: The pages were committed just now, under the lock, and are not handed out yet.
            let _ = unsafe { self.os.prefault(self.start(pages), pages.bytes(), how) };
        }
    }

    /// Says of mapped pages whether they are to have huge pages, if that is the same for all.
    pub(super) fn advise(&self, pages: Extent) {
        let thp = self.settings.thp();
        if thp != Thp::Auto {
            let _ = self.os.advise_huge(self.start(pages), pages.bytes(), thp == Thp::On);
        }
    }

    /// The places for blocks that are held back: few processes need them.
    pub(super) fn held_ring(&self, runs: &mut Runs, used: &mut usize) -> Option<&'static mut [Held]> {
        let ring = self.piece(runs, used, size_of::<[Held; BLOCKS_MOST]>())?;
        // SAFETY: the piece was handed out just now, and stays committed; it is zero, which is a valid `Held`, and long and aligned enough.
        Some(unsafe { slice::from_raw_parts_mut(ring.cast(), BLOCKS_MOST) })
    }

    /// Moves the memory behind a run in use to the start of another, without copying. The contents of the other are lost.
    ///
    /// # Errors
    /// The kernel's, and the state of the target.
    pub(super) fn move_memory(&self, from: &OwnedRun, to: &OwnedRun) -> Result<(), NotMoved> {
        let (source, target) = (self.extent(from), self.extent(to));
        debug_assert!(source.pages <= target.pages);
        // SAFETY: Both runs are in use, hence mapped, and the caller's; two runs do not overlap, and the target is not shorter.
        unsafe { self.os.relocate(self.start(source), source.bytes(), self.start(target)) }
    }

    /// Faults in the last `pages` of a large block, which were clean until now. If the kernel refuses, they are faulted in when they are
    /// written.
    pub(super) fn populate(&self, block: &OwnedRun, pages: Pages) {
        let block = self.extent(block);
        let tail = Extent::new(block.end() - pages, pages);
        // SAFETY: The pages are the caller's, and mapped, for they are in use.
        let _ = unsafe { self.os.prefault(self.start(tail), tail.bytes(), Prefault::Populate) };
    }

    /// Gives the memory of at most [`RUNS_AT_ONCE`] runs back as `how` says, without the lock. Returns a bit for each that the kernel took, the lowest for the first.
    pub(super) fn purge_memory<'r>(&self, runs: impl Iterator<Item = &'r PurgingRun>, how: Purge) -> u32 {
        let (mut ranges, mut n) = ([MemoryRange::EMPTY; RUNS_AT_ONCE], 0);
        let (mut bitmaps, mut n_bitmaps) = ([MemoryRange::EMPTY; RUNS_AT_ONCE], 0);
        for (place, run) in ranges.iter_mut().zip(runs) {
            *place = MemoryRange { start: self.start(run.extent()), bytes: run.extent().bytes() };
            n += 1;
            if let Some(place) = bitmaps.get_mut(n_bitmaps) {
                *place = self.bitmaps_of(run.extent());
                n_bitmaps += usize::from(place.bytes > 0);
            }
        }
        // SAFETY: The bitmaps of pages that are in no small span are committed, and read as zero; no thread uses them while the runs are taken out.
        let _ = unsafe { self.purge_ranges(bitmaps.get(..n_bitmaps).unwrap_or_default(), how) };
        // SAFETY: The runs were dirty, hence mapped and free, and were taken out for this thread to purge.
        unsafe { self.purge_ranges(ranges.get(..n).unwrap_or_default(), how) }
    }

    /// The whole OS pages of the bitmaps of pages; empty if they have none.
    fn bitmaps_of(&self, pages: Extent) -> MemoryRange {
        let [from, to] = [pages.first, pages.end()].map(|page| self.layout().bitmap(page).cast::<u8>());
        let os_page_bytes = self.os.os_page_bytes();
        let (start, end) = (align::up(from.addr(), os_page_bytes), align::down(to.addr(), os_page_bytes));
        MemoryRange { start: from.wrapping_add(start - from.addr()), bytes: end.saturating_sub(start) }
    }

    /// Bytes free inside spans beyond those that may stay there because as many went back in vain: with what is live, no more than ever was. 0 or less if there are none.
    /// Counts what was faulted in again since the last call.
    #[cold]
    #[inline(never)]
    pub(crate) fn beyond_what_was_in_vain(&self, usage: &Usage) -> i64 {
        let decay_ms = self.settings.decay_ms().unwrap_or(u32::MAX);
        let allowed = usage.in_vain().allowed_bytes(self.uncarved.bytes_and_ended(), self.os.now_ms() as u32, decay_ms);
        usage.free_in_spans() - (allowed as i64).min(usage.below_peak())
    }

    /// Gives memory inside small spans of the caller's back, and forgets what was collected for that.
    pub(crate) fn purge_inside(&self, stretches: &mut EmptyStretches<'_>) {
        // SAFETY: The stretches lie in spans in use, so they are mapped; they are made of whole OS pages, and no block in them is out.
        let gone = unsafe { self.purge_ranges(stretches.ranges(), self.settings.purge()) };
        if gone.count_ones() as usize != stretches.ranges().len() {
            stretches.note_kept();
        }
        for (at, range) in stretches.ranges().iter().enumerate() {
            let has_gone = gone >> at & 1 == 1;
            self.purges.count(has_gone, range.bytes);
            if let Some(span) = stretches.span(at).filter(|_| !has_gone) {
                // The span may have memory where nothing is carved.
                self.uncarved.add(-blocks::uncarved_bytes(span, self.os.os_page_bytes()));
                span.fresh_has_memory.set(true);
            }
        }
        stretches.clear();
    }

    /// Gives at most 32 ranges inside blocks of the caller's back.
    ///
    /// # Safety
    /// - The ranges are mapped, made of whole OS pages, and their contents are not needed.
    pub(crate) unsafe fn purge_blocks(&self, ranges: &[MemoryRange]) {
        // SAFETY: this function's contract.
        let gone = unsafe { self.purge_ranges(ranges, self.settings.purge()) };
        ranges.iter().enumerate().for_each(|(at, range)| self.purges.count(gone >> at & 1 == 1, range.bytes));
    }

    /// Gives at most 32 ranges back as `how` says, [`PIECE_MOST`] with a call. Returns a bit for each that the kernel took, the lowest for the
    /// first.
    ///
    /// # Safety
    /// - The ranges are mapped, made of whole OS pages, and their contents are not needed.
    #[cold]
    unsafe fn purge_ranges(&self, ranges: &[MemoryRange], how: Purge) -> u32 {
        let (mut left, mut at, mut gone) = (ranges, 0, 0);
        while let Some(&first) = left.first() {
            let n = match how {
                // SAFETY: The ranges are mapped, made of whole OS pages, and their contents are not needed, by this function's contract.
                Purge::DontNeed => unsafe { self.os.purge_first(self.for_one_call(left)) },
                // SAFETY: As above.
                Purge::Free => usize::from(unsafe { self.os.purge_lazily(first.start, first.bytes) }.is_ok()),
            };
            gone |= (((1_u64 << n) - 1) << at) as u32;
            at += n.max(1);
            left = ranges.get(at..).unwrap_or_default();
        }
        gone
    }

    /// The first ranges, as many as have [`PIECE_MOST`] together, and at least one. A sandbox may refuse the call for several.
    fn for_one_call<'r>(&self, ranges: &'r [MemoryRange]) -> &'r [MemoryRange] {
        let mut bytes = if self.settings.sandbox() { PIECE_MOST.to_bytes().0 } else { 0 };
        let fits = |range: &&MemoryRange| {
            bytes += range.bytes;
            bytes <= PIECE_MOST.to_bytes().0
        };
        let n = ranges.iter().take_while(fits).count().max(1);
        ranges.get(..n).unwrap_or(ranges)
    }
}

#[cfg(test)]
mod tests;
