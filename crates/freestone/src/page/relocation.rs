//! Relocation: moving the memory behind a large block to another, without copying.
#![allow(unsafe_code)]
//!
//! # Safety
//! An [`OwnedRun`] is the right to end the use of its run.

use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::runs::FreeState;
use freestone_base::units::Pages;
use freestone_os::{Os, Target};

/// What became of a large block whose memory was to move to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It has moved: the old block is freed.
    Yes,
    /// It is where it was; both blocks are as good as before, but what the new one holds is undefined.
    No,
    /// It is where it was; the new block is gone.
    TargetLost,
}

impl<O: Os> PageHeap<O> {
    /// Moves the memory behind a large block to the start of another, which is not shorter; the old block is freed, and clean. What [`Moved`]
    /// says is freed or gone is used no more.
    ///
    /// # Safety
    /// - `from` and `to` are different large blocks, and nobody needs what is in `to`.
    pub unsafe fn relocate(&self, from: OwnedRun, to: OwnedRun) -> Moved {
        if self.settings.sandbox() {
            return Moved::No;
        }
        let (source, target) = (self.extent(&from), self.extent(&to));
        // SAFETY: Both blocks are in use, hence mapped; they do not overlap, and nobody needs what is in the target: the caller sees to that.
        let moved = unsafe { self.os.relocate(self.start(source), source.bytes(), self.start(target)) };
        if let Err(failed) = moved {
            return self.after_failed_move(to, source.pages, failed.target);
        }
        let is_huge = self.record(&from).is_huge.get() && !self.forget_huge_pages_of(&from);
        let mut state = self.state.lock();
        state.end_large(from.page());
        state.runs.free(from.page(), FreeState { is_huge, ..FreeState::CLEAN });
        Moved::Yes
    }

    /// Gives up a large block whose first `pages` the kernel has unmapped, if it has. What is behind them was not touched.
    fn after_failed_move(&self, to: OwnedRun, pages: Pages, target: Target) -> Moved {
        let lost = match target {
            Target::Committed => return Moved::No,
            Target::Reserved => FreeState::RESERVED,
            Target::Taken => FreeState::FOREIGN,
        };
        let now = self.now();
        let mut state = self.state.lock();
        let rest = FreeState::dirty(now, self.record(&to).is_huge.get());
        state.end_large(to.page());
        state.runs.free_in_two(to.page(), pages, lost, rest);
        Moved::TargetLost
    }
}
