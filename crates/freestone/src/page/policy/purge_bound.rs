//! The purge bound: which dirty memory goes back to the kernel, and in what pieces.
//!
//! ```text
//!  oldest ─▶ dirty run ─▶ dirty run ─▶ … ─▶ youngest        purged from the oldest end, piece by piece, while
//!                                                            the oldest is as old as the decay time, or all are more than the bound
//! ```
//!
//! The bound is the option `dirty_max`, or a tenth of what is in use, and more while the program churns. When a large block is freed, a lower one holds as well, within a
//! budget: `early_purge`.

use freestone_base::units::{Millis, Pages};

/// Memory beyond the bound is purged in pieces of at least this much: 1 MiB.
const PIECE_LEAST: Pages = Pages(16);

/// One call gives back at most this much, 2 MiB: a fork, or a thread that maps memory, waits for it in the kernel.
pub(in crate::page) const PIECE_MOST: Pages = Pages(32);

/// The most runs that are taken out at once, so that the lock is taken once for all, and one call gives many back. They are on the stack of the thread that
/// purges: more would touch another OS page of the stack of each.
pub(in crate::page) const RUNS_AT_ONCE: usize = 16;

/// A thread that allocates or frees purges as much as has become free since the last time, and 16 MiB more, which is all that a small program keeps dirty. Gigabytes that are due
/// because time has passed, or because the program has stopped churning, would take it tenths of a second.
pub(in crate::page) const CALL_MOST: Pages = Pages(256);

/// What a thread has done before it purges what is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum After {
    /// It freed a large block: the early bound holds as well ([`EarlyPurge`](crate::page::policy::early_purge::EarlyPurge)).
    LargeFree,
    /// It emptied spans, allocated, or looks for what has expired.
    Other,
    /// It has slept: the background thread, which keeps nobody waiting.
    Sleep,
}

/// Why the oldest dirty run is purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum Due {
    /// It has been dirty for the decay time: all of it goes back.
    Expired,
    /// There is too much dirty memory: about this many pages of it go back.
    Excess(Pages),
}

/// Whether the oldest dirty run, dirty for `age`, is to be purged. `dirty` pages are dirty in all; `bound` of them may stay.
pub(in crate::page) fn due(age: Millis, decay: Option<Millis>, dirty: Pages, bound: Pages) -> Option<Due> {
    if decay.is_some_and(|decay| age >= decay) {
        return Some(Due::Expired);
    }
    let excess = dirty.saturating_sub(bound);
    (excess > Pages::ZERO).then_some(Due::Excess(excess.max(PIECE_LEAST)))
}

/// The number of groups that [`age_group`] has.
pub(in crate::page) const AGE_GROUPS: usize = 4;

/// The group of an age: 0 below a quarter of the decay time, 1 below half of it, 2 below all of it, 3 from there on.
pub(in crate::page) fn age_group(age: Millis, decay: Millis) -> usize {
    [decay.0 / 4, decay.0 / 2, decay.0].iter().filter(|&&start| age.0 >= start).count()
}

#[cfg(test)]
mod tests;
