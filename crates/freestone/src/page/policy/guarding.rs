//! Guarding: which large blocks and spans get a guard behind them, and how.
//!
//! A guard costs a system call of half a microsecond and a page of addresses. Where the block's memory is new, page faults cost a hundred times as
//! much; where it has been used before, nothing is to be lost.

use freestone_base::units::Pages;
use freestone_os::{Errno, GuardBy};

/// Shorter blocks get guards only if all do: there are many of them, and a guard would take as many addresses as they do.
const LEAST: Pages = Pages(4);

/// The most guards by access rights: each may split a mapping into three, and Linux allows a process 65,530 mappings.
const BY_RIGHTS_MOST: u32 = 8192;

/// Of so many spans one has a guard by access rights: there are more spans than a process may have mappings.
const RIGHTS_SHARE: u64 = 8;

/// Which runs get guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum Wanted {
    /// None.
    Never,
    /// Those of some length whose memory is new, if the kernel has markers.
    WhereCheap,
    /// All, as far as the kernel has markers.
    WithMarkers,
    /// All; by access rights if the kernel has no markers.
    Always,
    /// All, as far as the kernel has markers; else one in [`RIGHTS_SHARE`], at random, by access rights.
    AtRandom,
}

/// What is known of the kernel, and how many guards there are that it has a limit for.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct Guarding {
    /// The kernel has no markers.
    refuses_markers: bool,
    /// Guards by access rights.
    by_rights: u32,
    /// There may be this many.
    by_rights_most: u32,
    /// That there are so many was said.
    was_said: bool,
    /// Decides which spans have a guard by access rights.
    lot: u64,
    /// Guards had to give way because address space was short.
    is_short: bool,
    /// Guards that the kernel did not make accessible when their pages were needed.
    n_given_up: u32,
}

impl Guarding {
    /// The kernel was not asked yet.
    pub(in crate::page) const NEW: Self = Self {
        refuses_markers: false,
        by_rights: 0,
        by_rights_most: BY_RIGHTS_MOST,
        was_said: false,
        lot: 0,
        is_short: false,
        n_given_up: 0,
    };

    /// How many guards were given up.
    pub(in crate::page) fn n_given_up(&self) -> u32 {
        self.n_given_up
    }

    /// Counts a guard that was given up.
    pub(in crate::page) fn count_given_up(&mut self) {
        self.n_given_up += 1;
    }

    /// How the guard of a block of `pages` is made; `None` if it gets none. `is_fresh` says whether its memory is new.
    pub(in crate::page) fn choose(&self, wanted: Wanted, pages: Pages, is_fresh: bool) -> Option<GuardBy> {
        let is_wanted = match wanted {
            Wanted::Never => false,
            Wanted::WhereCheap => is_fresh && pages >= LEAST,
            Wanted::WithMarkers | Wanted::Always | Wanted::AtRandom => true,
        };
        let by = if !self.refuses_markers {
            Some(GuardBy::Marker)
        } else if self.may_use_rights(wanted) && self.by_rights < self.by_rights_most {
            Some(GuardBy::Rights)
        } else {
            None
        };
        by.filter(|_| is_wanted)
    }

    fn may_use_rights(&self, wanted: Wanted) -> bool {
        match wanted {
            Wanted::Always => true,
            Wanted::AtRandom => self.lot <= u64::MAX / RIGHTS_SHARE,
            _ => false,
        }
    }

    /// Draws the lot that decides about the next guard by access rights, from an address, which is random in each process.
    pub(in crate::page) fn draw_lot(&mut self, address: usize) {
        // Knuth's linear congruential generator; its high bits are the random ones, and decide. They become the low ones of what is mixed next.
        let mixed = self.lot.rotate_left(32) ^ address as u64;
        self.lot = mixed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }

    /// Counts a guard that was made.
    pub(in crate::page) fn count(&mut self, by: GuardBy) {
        if by == GuardBy::Rights {
            self.by_rights += 1;
        }
    }

    /// Counts guards that exist no more.
    pub(in crate::page) fn discount(&mut self, by: GuardBy) {
        if by == GuardBy::Rights {
            self.by_rights -= 1;
        }
    }

    /// Notes that the kernel has refused a guard. One by access rights it refuses at its limit of mappings: then there will not be more than now.
    pub(in crate::page) fn note_refusal(&mut self, by: GuardBy, errno: Errno) {
        match by {
            GuardBy::Marker => self.refuses_markers |= !errno.is_passing(),
            GuardBy::Rights if errno == Errno::NOMEM => self.by_rights_most = self.by_rights,
            GuardBy::Rights => {}
        }
    }

    /// Notes that guards have to give way because address space is short.
    pub(in crate::page) fn note_shortage(&mut self) {
        self.is_short = true;
    }

    /// Whether guards had to give way: they take as many addresses as the spans before them.
    pub(in crate::page) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Whether it has to be said that blocks lack guards: the first time that there are as many by access rights as there may be, and the kernel
    /// has no others.
    pub(in crate::page) fn has_to_be_said(&mut self) -> bool {
        let is_exhausted = self.refuses_markers && self.by_rights >= self.by_rights_most;
        is_exhausted && !core::mem::replace(&mut self.was_said, true)
    }
}

#[cfg(test)]
mod tests;
