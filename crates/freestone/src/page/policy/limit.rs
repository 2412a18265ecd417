//! Limits: whether an allocation fits, and what to do if it does not.
//!
//! ```text
//!  0 ────────────── in use ─────── soft limit ─────────── hard limit
//!                          │ memory is handed out freely   │
//!                          └ dirty memory goes back first; the allocating thread empties caches and calls the listener
//!                                                          └ allocations fail
//! ```
//!
//! Small spans, large blocks and free runs with memory count, in whole pages of 64 KiB. Runs that the kernel is taking back
//! have memory until it is done: an allocation that would fit without them waits for that.

use freestone_base::units::Pages;

/// Once the soft limit was passed, it is reported again when this part of it more is in use.
const AGAIN_SHARE: u32 = 64;

/// Part of the control group's limit that becomes the soft limit: the rest is for stacks, code and files.
const GROUP_SHARE: (u64, u64) = (15, 16);

/// The control group's limit is read when the heap has this many pages, 32 MiB: small processes do not pay for it.
pub(in crate::page) const GROUP_LOOKUP_PAGES: Pages = Pages(512);

/// The soft limit of a process whose control group may have `group_bytes`.
pub(in crate::page) fn soft_limit_of_group(group_bytes: u64) -> u64 {
    group_bytes / GROUP_SHARE.1 * GROUP_SHARE.0
}

/// Pages by what the limits count them as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Usage {
    /// In spans and large blocks.
    pub(in crate::page) in_use: Pages,
    /// Free, with memory behind them.
    pub(in crate::page) free_with_memory: Pages,
    /// Of these, pages that the kernel is taking back.
    pub(in crate::page) purging: Pages,
}

/// The limits of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Limits {
    soft: Pages,
    hard: Pages,
}

impl Limits {
    /// The limits in bytes, where there are any; `None` without a limit.
    pub(in crate::page) fn new(soft_bytes: Option<usize>, hard_bytes: Option<usize>) -> Option<Self> {
        let pages = |bytes: Option<usize>| bytes.map_or(Pages::MAX, |bytes| Pages::in_bytes(bytes as u64));
        (soft_bytes.is_some() || hard_bytes.is_some())
            .then_some(Self { soft: pages(soft_bytes), hard: pages(hard_bytes) })
    }

    /// The lower limit.
    fn least(self) -> Pages {
        self.soft.min(self.hard)
    }

    /// Whether memory has to go back before `more` pages are handed out.
    pub(in crate::page) fn are_short(self, usage: Usage, more: Pages) -> bool {
        usage.in_use.saturating_add(usage.free_with_memory).saturating_add(more) > self.least()
    }

    /// Whether `more` pages fit once the purges under way have ended: within the lower limit, or, if what is in use
    /// passes it, within the hard one.
    pub(in crate::page) fn await_purges(self, usage: Usage, more: Pages) -> bool {
        let wanted = usage.in_use.saturating_add(more);
        let limit = if wanted <= self.least() { self.least() } else { self.hard };
        wanted <= limit && wanted.saturating_add(usage.purging) > limit
    }

    /// Whether `more` pages would pass the hard limit.
    pub(in crate::page) fn refuse(self, usage: Usage, more: Pages) -> bool {
        usage.in_use.saturating_add(more).saturating_add(usage.purging) > self.hard
    }
}

/// Whether it was reported that the soft limit is passed.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct Pressure {
    /// Pages in use beyond which it is reported again.
    next: Pages,
}

impl Pressure {
    /// Not reported.
    pub(in crate::page) const NONE: Self = Self { next: Pages::ZERO };

    /// Notes that `in_use` pages are in use. Returns whether to report that the soft limit is passed.
    pub(in crate::page) fn rises(&mut self, limits: Limits, in_use: Pages) -> bool {
        if in_use <= limits.soft {
            self.next = limits.soft;
            return false;
        }
        let rises = in_use > self.next.max(limits.soft);
        if rises {
            self.next = in_use.saturating_add(Pages(limits.soft.0 / AGAIN_SHARE));
        }
        rises
    }
}

#[cfg(test)]
mod tests;
