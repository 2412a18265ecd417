//! Guards: a page behind a large block, or a span at the level `full`, every access to which faults.
#![allow(unsafe_code)]
//!
//! ```text
//!  taken:   guards left in the pages ──▶ accessible;  the page behind the block ──▶ guard
//!  freed:   nothing: the guard stays where it is (`runs::guard_pages`); at the level `full` the block itself is closed (`address_quarantine`)
//! ```
//!
//! A guard has no memory, is not in use, and counts against no limit. It costs one call of the kernel when it is made, and one when its page is
//! needed for something else. Where address space is short, guards give way to spans. A block that is placed before a guard of an earlier block, or that comes out of a large-run cache, has one for
//! nothing. A guard that cannot be had is missing, and nothing else is.
//!
//! The option `harden` decides, as it was when the block is placed: see [`PageHeap::guards_wanted`]. The lock is held for the calls, because
//! another thread that takes the page reads what it is.
//!
//! # Safety
//! Each function states why no code uses the page that it passes to the kernel.

use crate::config::{Harden, Prefault, Thp};
use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::policy::guarding::Wanted;
use crate::page::runs::{Extent, FreeState};
use crate::page::state::State;
use crate::span::{Kind, PageAccess, PageIndex};
use freestone_base::sync::Ordering;
use freestone_base::units::Pages;
use freestone_os::{Errno, GuardBy, Os};

/// A guard's length.
const ONE: Pages = Pages(1);

/// So many guards give way at once: they are looked for among all runs.
const ENDED_AT_ONCE: usize = 64;

/// How a page was made inaccessible; `None` if it was not.
fn guarded_by(access: PageAccess) -> Option<GuardBy> {
    match access {
        PageAccess::Open => None,
        PageAccess::Marked => Some(GuardBy::Marker),
        PageAccess::Denied => Some(GuardBy::Rights),
    }
}

/// What a page is that was made inaccessible so.
fn access_after(by: GuardBy) -> PageAccess {
    match by {
        GuardBy::Marker => PageAccess::Marked,
        GuardBy::Rights => PageAccess::Denied,
    }
}

/// Calls `open` with each guard in a run and how it was made, and notes that it is accessible.
///
/// # Errors
/// The first one for which `open` returns `false`.
fn for_each_guard(state: &mut State, run: Extent, open: impl Fn(PageIndex, GuardBy) -> bool) -> Result<(), PageIndex> {
    let mut from = run.first;
    while let Some((page, access)) = state.runs.next_guard(run, from) {
        if let Some(by) = guarded_by(access) {
            if !open(page, by) {
                return Err(page);
            }
            state.guarding.discount(by);
        }
        state.runs.open_page(run.first, page);
        from = page + ONE;
    }
    state.runs.note_open(run);
    Ok(())
}

impl<O: Os> PageHeap<O> {
    /// Which runs of `kind` get guards: large blocks, and spans where all large blocks do.
    ///
    /// Where memory is prefaulted, or the kernel gives huge pages without a request, a guard would cost page faults later: then only `full` has
    /// guards. In a sandbox, which may refuse other advice than a purge with the end of the process, `full` makes them by advice alone.
    pub(super) fn guards_wanted(&self, kind: Kind) -> Wanted {
        let settings = &self.settings;
        match settings.harden() {
            Harden::Full if kind == Kind::Small && !settings.sandbox() => Wanted::AtRandom,
            Harden::Full if kind == Kind::Small => Wanted::WithMarkers,
            _ if kind != Kind::Large => Wanted::Never,
            Harden::Off => Wanted::Never,
            Harden::Full if settings.sandbox() => Wanted::WithMarkers,
            Harden::Full => Wanted::Always,
            _ if settings.sandbox() || settings.prefault() != Prefault::Off || settings.thp() == Thp::On => {
                Wanted::Never
            }
            _ if self.os.gives_huge_pages_unasked() => Wanted::Never,
            _ => Wanted::WhereCheap,
        }
    }

    /// Pages to look for behind a run of new memory, for its guard.
    pub(super) fn guard_room(&self, state: &State, kind: Kind, pages: Pages) -> Pages {
        if state.guarding.choose(self.guards_wanted(kind), pages, true).is_some() { ONE } else { Pages::ZERO }
    }

    /// Makes all pages of a run accessible that was just taken.
    ///
    /// # Errors
    /// The page that the kernel refuses: the run must not be used.
    pub(super) fn open_guards(&self, state: &mut State, run: Extent) -> Result<(), PageIndex> {
        for_each_guard(state, run, |page, by| {
            let guard = Extent::new(page, ONE);
            // SAFETY: The page is a guard by these means, and in a run that was just taken and not yet handed out.
            unsafe { self.os.unguard(self.start(guard), guard.bytes(), by) }.is_ok()
        })
    }

    /// Makes all pages of a run accessible that was just taken. If the kernel refuses one, gives that page up, and the rest of the run is free again, as it `was`: without it, the next search finds
    /// another one. Returns whether the run can be used.
    pub(super) fn open_or_give_up(&self, state: &mut State, run: Extent, was: FreeState) -> bool {
        let opened = self.open_guards(state, run);
        if let Err(page) = opened {
            state.runs.give_up(run.first, page, was);
            state.guarding.count_given_up();
        }
        opened.is_ok()
    }

    /// Notes that a free run was unmapped, and the guards in it with it.
    pub(super) fn forget_guards(state: &mut State, run: Extent) {
        let _ = for_each_guard(state, run, |_, _| true);
    }

    /// Makes the page behind a large block a guard if it was one before and is free now. Costs no call of the kernel.
    pub(super) fn keep_guard(&self, state: &mut State, block: Extent) -> bool {
        let behind = block.end();
        let record = state.runs.record(behind);
        let was_guard = record.kind.get().is_free_and_mapped() && record.access.get() != PageAccess::Open;
        if was_guard {
            state.runs.take_guard(behind);
        }
        was_guard
    }

    /// Makes the page behind a run that was just placed for a use of `kind` a guard, if it gets one and the page is free. `is_fresh` says
    /// whether the run's memory is new.
    pub(super) fn guard_behind(&self, state: &mut State, kind: Kind, block: Extent, is_fresh: bool) {
        let wanted = self.guards_wanted(kind);
        if wanted == Wanted::Never || kind == Kind::Small && state.guarding.is_short() || self.keep_guard(state, block)
        {
            return;
        }
        state.guarding.draw_lot(self.start(block).addr());
        // A page with memory loses it first, which costs another call.
        let kind = state.runs.record(block.end()).kind.get();
        if kind != Kind::Clean && !(kind.is_free_and_mapped() && matches!(wanted, Wanted::Always | Wanted::AtRandom)) {
            return;
        }
        for _ in 0..2 {
            let Some(by) = state.guarding.choose(wanted, block.pages, is_fresh) else { break };
            match self.make_guard(state, block.end(), by) {
                Ok(()) => return,
                Err(errno) => state.guarding.note_refusal(by, errno),
            }
        }
        if wanted == Wanted::Always && state.guarding.has_to_be_said() {
            self.guards_ran_out.store(true, Ordering::Relaxed);
        }
    }

    /// Makes a free page that starts a free run a guard.
    fn make_guard(&self, state: &mut State, page: PageIndex, by: GuardBy) -> Result<(), Errno> {
        let guard = Extent::new(page, ONE);
        let was = state.runs.take_guard(page);
        // SAFETY: The page was just taken out of a free run, and is not handed out.
        let made = unsafe { self.close(guard, by, was.kind != Kind::Clean) };
        match made {
            Ok(()) => {
                state.runs.close_guard(page, access_after(by));
                state.guarding.count(by);
            }
            Err(_) => state.runs.free(page, was),
        }
        made
    }

    /// Makes guards clean pages, because address space is short; from then on spans get no more of them. `None` if there is no guard that the
    /// kernel makes accessible.
    pub(super) fn end_guards(&self, state: &mut State) -> Option<()> {
        state.guarding.note_shortage();
        let mut ended = None;
        for page in state.runs.first_guards::<ENDED_AT_ONCE>().into_iter().flatten() {
            let guard = Extent::new(page, ONE);
            let is_guard = state.runs.record(page).kind.get() == Kind::Guard;
            let is_open = is_guard
                && for_each_guard(state, guard, |_, by| {
                    // SAFETY: The page is a guard by these means: no code uses it.
                    unsafe { self.os.unguard(self.start(guard), guard.bytes(), by) }.is_ok()
                })
                .is_ok();
            if is_open {
                state.runs.free(page, FreeState::CLEAN);
                ended = Some(());
            }
        }
        ended
    }

    /// Gives back what memory pages have, so that they read as zero when they are opened again, and makes them inaccessible. A marker does both, if the
    /// kernel is one that purges: under an emulator that ignores advice it would do neither.
    ///
    /// # Safety
    /// - The pages are mapped, and no code uses them.
    unsafe fn close(&self, run: Extent, by: GuardBy, has_memory: bool) -> Result<(), Errno> {
        if has_memory && !(by == GuardBy::Marker && self.os.purge_zeroes()) {
            // SAFETY: No code uses the pages, which are mapped (this function's contract).
            let purged = unsafe { self.os.purge(self.start(run), run.bytes()) };
            // That memory which is locked stays says nothing of guards elsewhere.
            if purged.is_err() || !self.os.purge_zeroes() {
                return Err(Errno::AGAIN);
            }
        }
        // SAFETY: As above.
        unsafe { self.os.guard(self.start(run), run.bytes(), by) }
    }

    /// Gives the memory of a block that is being freed back, and makes all its pages inaccessible. Without the lock: a long block takes the kernel a
    /// while.
    pub(super) fn close_block(&self, block: &OwnedRun, by: GuardBy) -> Result<(), Errno> {
        // SAFETY: The run was in use, so it is mapped, and whoever frees it has given its contents up.
        unsafe { self.close(self.extent(block), by, true) }
    }

    /// Makes a quarantined run accessible; `false` if the kernel refuses.
    pub(super) fn open_again(&self, run: Extent, by: GuardBy) -> bool {
        // SAFETY: The run is quarantined: free, in no set, and closed as a whole by these means.
        unsafe { self.os.unguard(self.start(run), run.bytes(), by) }.is_ok()
    }

    /// Whether blocks lack guards because there are as many as the kernel allows; once.
    #[must_use]
    pub(crate) fn take_guards_ran_out(&self) -> bool {
        self.guards_ran_out.load(Ordering::Relaxed) && self.guards_ran_out.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
