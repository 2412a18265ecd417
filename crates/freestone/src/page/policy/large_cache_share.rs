//! Large-run caches, and the lists of freed runs: how much memory they may hold, and how often they are checked.

use freestone_base::units::{Millis, Pages};

/// Open slots of all caches may have this part of the dirty bound.
const BOUND_SHARE: u32 = 4;

/// The longest run that is left in a list when it is freed: 1 MiB. The lists have room for 16 of these where little memory is in use.
pub(in crate::page) const LISTED_MOST: Pages = Pages(16);

/// A block that finds no run in its list takes a dirty one, and leaves this many more of its length in the list.
pub(in crate::page) const FILLED: u32 = 3;

/// Caches are checked this many times in a decay time: what was not used between two checks goes back.
const CHECKS_PER_DECAY: u32 = 4;

/// Pages that the open slots of all caches may have, where `bound` dirty pages may stay.
pub(in crate::page) fn pages_most(bound: Pages) -> Pages {
    Pages(bound.0 / BOUND_SHARE)
}

/// How long it is from one check of the caches, and from one emptying of the lists, to the next.
pub(crate) fn check_interval(decay: Millis) -> Millis {
    Millis(decay.0 / CHECKS_PER_DECAY)
}

#[cfg(test)]
mod tests;
