//! The order of the contenders within a round.
//!
//! The order is random, so that nothing that repeats in the machine (a timer, a neighbour, a cache that the previous run left warm) favours
//! one of them, and drawn from a seed, so that it can be repeated. Each round of each subject has its own order, which depends on nothing
//! else that is measured.

use crate::results::file_header::Seed;
use crate::workload::random::Random;
use std::hash::{BuildHasher, RandomState};

/// The seed that was given, or a random one.
pub(crate) fn given_or_random(seed: Option<u32>) -> Seed {
    Seed(seed.unwrap_or_else(|| RandomState::new().hash_one(0) as u32))
}

/// The numbers below `contenders`, in the order of this round of `subject`.
pub(crate) fn of_round(seed: Seed, subject: &str, round: usize, contenders: usize) -> Vec<usize> {
    // FNV-1a (Fowler, Noll, Vo) of everything that the order depends on.
    let bytes = seed.0.to_le_bytes().into_iter().chain((round as u64).to_le_bytes()).chain(subject.bytes());
    let hash = bytes
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    let mut random = Random::new(hash);
    let mut order: Vec<usize> = (0..contenders).collect();
    // Fisher-Yates shuffle: every order is equally likely.
    for end in (1..contenders).rev() {
        order.swap(end, random.below(end + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_order_comes_about_equally_often() {
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for round in 0..6000 {
            *seen.entry(of_round(Seed(7), "larson", round, 3)).or_default() += 1;
        }
        assert_eq!(seen.len(), 6, "all orders of three");
        // Five standard deviations are 144.
        assert!(seen.values().all(|&times| times.abs_diff(1000) < 150), "{seen:?}");
    }

    #[test]
    fn a_seed_repeats_its_orders_and_another_has_others() {
        let orders = |seed, subject| (0..20).map(|round| of_round(Seed(seed), subject, round, 5)).collect::<Vec<_>>();
        assert_eq!(orders(1, "larson"), orders(1, "larson"));
        assert_ne!(orders(1, "larson"), orders(2, "larson"));
        assert_ne!(orders(1, "larson"), orders(1, "tiny_hot"));
    }

    #[test]
    fn a_seed_that_is_given_is_used() {
        assert_eq!(given_or_random(Some(7)), Seed(7));
    }
}
