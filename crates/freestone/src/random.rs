//! Random numbers for decisions that no attacker gains from: what is sampled, and where a sample is placed.
//!
//! The kernel gives the first number, once; each further one costs a few instructions (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", 2014). Keys and canaries are not made of these: who knows one number knows the next.
//!
//! Threads: any thread draws, without a lock; no two draws return the same number of the sequence.

use freestone_base::sync::{AtomicU64, Ordering};

/// See the module header.
#[derive(Debug)]
pub(crate) struct RandomNumbers {
    /// 0 before the first draw.
    state: AtomicU64,
}

impl RandomNumbers {
    /// Nothing was drawn.
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU64::new(0) }
    }

    /// A random number; `first` gives the seed, which the first draw asks for.
    #[inline]
    pub(crate) fn draw(&self, first: impl FnOnce() -> u64) -> u64 {
        if self.state.load(Ordering::Relaxed) == 0 {
            let _ = self.state.compare_exchange(0, first() | 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        mixed(self.state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed))
    }
}

/// A number of which each bit depends on all bits of another (the finalizer of SplitMix64).
#[inline]
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_seed_is_asked_for_once_and_draws_differ_in_half_of_their_bits() {
        let source = RandomNumbers::new();
        let mut n_asked = 0;
        let numbers: Vec<u64> = (0..1000)
            .map(|_| {
                source.draw(|| {
                    n_asked += 1;
                    7
                })
            })
            .collect();
        assert_eq!(n_asked, 1);
        let differing: u32 = numbers.windows(2).map(|pair| (pair[0] ^ pair[1]).count_ones()).sum();
        assert!((31_000..33_000).contains(&differing), "{differing}");
    }
}
