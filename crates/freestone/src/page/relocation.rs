//! Relocation: moving the memory behind a large block to another, without copying.

use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::mappings;
use crate::page::runs::{Extent, FreeState};
use freestone_base::units::Pages;
use freestone_os::{Os, Target};

/// The result of moving a large block's memory to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// The memory has moved; the old block is freed.
    Yes,
    /// The memory has not moved; both blocks are still usable, but the contents of the new one are undefined.
    No,
    /// The memory has not moved; the new block is gone.
    TargetLost,
}

impl<O: Os> PageHeap<O> {
    /// Moves the memory behind a large block to the start of another, whose contents are not needed; the old block is freed, and clean, or quarantined.
    /// A shorter block cannot be the target.
    pub(crate) fn relocate(&self, from: OwnedRun, to: OwnedRun) -> Moved {
        let source = self.extent(&from);
        let is_long_enough = self.extent(&to).pages >= source.pages;
        if self.settings.sandbox() || !is_long_enough || !mappings::may_move(source.pages, self.arena()) {
            return Moved::No;
        }
        let failed = self.move_memory(&from, &to).err();
        if failed.is_none_or(|failed| failed.target == Target::Committed) {
            // What was not moved was mapped anew, to be copied to or to be as before.
            self.advise(Extent::new(to.page(), source.pages));
        }
        if let Some(failed) = failed {
            return self.after_failed_move(to, source.pages, failed.target);
        }
        let was_huge = self.record(&from).is_huge.get();
        if was_huge {
            // The request has moved with the memory.
            self.record(&to).is_huge.set(true);
        }
        let is_huge = was_huge && !self.forget_huge_pages_of(&from);
        let Err(from) = self.quarantine(from) else { return Moved::Yes };
        let mut state = self.lock();
        state.end_large(from.page());
        state.runs.free(from.page(), FreeState { is_huge, ..FreeState::CLEAN });
        Moved::Yes
    }

    /// Gives up a large block whose first `pages` the kernel has unmapped, if it has. What is behind them was not touched.
    #[inline]
    fn after_failed_move(&self, to: OwnedRun, pages: Pages, target: Target) -> Moved {
        let lost = match target {
            Target::Committed => return Moved::No,
            Target::Reserved => FreeState::RESERVED,
            Target::Taken => FreeState::FOREIGN,
        };
        let now = self.now();
        let mut state = self.lock();
        let rest = FreeState::dirty(now, self.record(&to).is_huge.get());
        state.end_large(to.page());
        state.runs.free_in_two(to.page(), pages, lost, rest);
        Moved::TargetLost
    }
}

#[cfg(test)]
mod tests;
