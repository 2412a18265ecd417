//! Large-run caches, and the lists of freed runs: how much memory they may hold, and how often they are checked.

use freestone_base::units::{Millis, Pages};

/// Open slots of all caches may have this part of the dirty bound.
const BOUND_SHARE: u32 = 4;

/// The longest run that is left in a list when it is freed: 256 KiB. Of longer ones there are so many lengths that a run seldom finds a block, and little
/// room for each.
pub(in crate::page) const LISTED_MOST: Pages = Pages(4);

/// A block that finds no run in its list takes a dirty one, and leaves this many more of its length in the list.
pub(in crate::page) const FILLED: u32 = 3;

/// The lists of freed runs may have this part of it: more than the caches, because every thread takes from them.
const LISTED_SHARE: u32 = 2;

/// Caches are checked this many times in a decay time: what was not used between two checks goes back.
const CHECKS_PER_DECAY: u32 = 4;

/// Pages that the open slots of all caches may have, where `bound` dirty pages may stay.
pub(in crate::page) fn pages_most(bound: Pages) -> Pages {
    Pages(bound.0 / BOUND_SHARE)
}

/// Pages that the lists of freed runs may have, where `bound` dirty pages may stay if the program does not churn, and `left` more may become dirty.
pub(in crate::page) fn listed_most(bound: Pages, left: Pages) -> Pages {
    Pages(bound.0 / LISTED_SHARE).min(left)
}

/// How long it is from one check of the caches, and from one emptying of the lists, to the next.
pub(crate) fn check_interval(decay: Millis) -> Millis {
    Millis(decay.0 / CHECKS_PER_DECAY)
}

#[cfg(test)]
mod tests;
