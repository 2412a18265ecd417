//! The order of the contenders within a round: drawn by chance, so that what repeats in the machine (a timer, a neighbour, a cache left warm by the one
//! before) favours none of them, and drawn from a seed, so that it can be had again.
//!
//! Every round of every subject has a draw of its own, which depends on nothing else that was measured.

use crate::workload::random::Random;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};

/// What the orders are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seed(pub(crate) u32);

impl Seed {
    /// The seed asked for, or one by chance.
    pub(crate) fn given_or_drawn(given: Option<u32>) -> Self {
        Self(given.unwrap_or_else(|| RandomState::new().hash_one(0) as u32))
    }

    /// The numbers below `contenders`, in the order of this round.
    pub(crate) fn order(self, subject: &str, round: usize, contenders: usize) -> Vec<usize> {
        // Fowler, Noll and Vo's hash, FNV-1a, of everything the order depends on.
        let of_draw = self.0.to_le_bytes().into_iter().chain((round as u64).to_le_bytes()).chain(subject.bytes());
        let hash = of_draw.fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        let mut random = Random::new(hash);
        let mut order: Vec<usize> = (0..contenders).collect();
        // Fisher and Yates: every order is as likely as any other.
        for end in (1..contenders).rev() {
            order.swap(end, random.below(end + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_order_comes_about_equally_often() {
        let mut seen: BTreeMap<Vec<usize>, u32> = BTreeMap::new();
        for round in 0..6000 {
            *seen.entry(Seed(7).order("larson", round, 3)).or_default() += 1;
        }
        assert_eq!(seen.len(), 6, "all orders of three");
        // Five standard deviations are 144.
        assert!(seen.values().all(|&times| times.abs_diff(1000) < 150), "{seen:?}");
    }

    #[test]
    fn a_seed_repeats_its_orders_and_another_has_others() {
        let orders = |seed, subject| (0..20).map(|round| Seed(seed).order(subject, round, 5)).collect::<Vec<_>>();
        assert_eq!(orders(1, "larson"), orders(1, "larson"));
        assert_ne!(orders(1, "larson"), orders(2, "larson"));
        assert_ne!(orders(1, "larson"), orders(1, "tiny_hot"));
    }
}
