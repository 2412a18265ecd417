//! Large-run caches: how much memory they may hold, all threads' together, and how often they are checked.

use freestone_base::units::{Millis, Pages};

/// Open slots of all caches may have this part of the dirty bound.
const BOUND_SHARE: u32 = 4;

/// Caches are checked this many times in a decay time: what was not used between two checks goes back.
const CHECKS_PER_DECAY: u32 = 4;

/// Pages that the open slots of all caches may have, where `bound` dirty pages may stay.
pub(in crate::page) fn pages_most(bound: Pages) -> Pages {
    Pages(bound.0 / BOUND_SHARE)
}

/// How long it is from one check of the caches to the next.
pub(crate) fn check_interval(decay: Millis) -> Millis {
    Millis(decay.0 / CHECKS_PER_DECAY)
}

#[cfg(test)]
mod tests;
