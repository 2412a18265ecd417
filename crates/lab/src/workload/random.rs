//! A small random number generator. It gives the same numbers on every machine and in every run, so that workloads repeat exactly.
//!
//! Source: Marsaglia, "Xorshift RNGs" (2003): the 64-bit variant, with a multiplied output.

/// The generator.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of `seed`. Seeds below 2³² have different sequences.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 32 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }

    /// A number below `bound`, which must not be 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.next()) * bound as u64) >> 32) as usize
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// Puts items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|at| items.swap(at, self.below(at + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_sequence_and_the_next_has_another() {
        let sequence = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.next())
        };
        assert_eq!(sequence(1), sequence(1));
        assert!((0..1000).all(|seed| sequence(seed) != sequence(seed + 1)));
    }

    #[test]
    fn a_shuffle_keeps_the_items_and_brings_each_to_each_place() {
        let mut random = Random::new(7);
        let mut seen = [[false; 4]; 4];
        for _ in 0..200 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            items.iter().enumerate().for_each(|(place, &item)| seen[place][item] = true);
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        assert_eq!(seen, [[true; 4]; 4]);
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut random = Random::new(3);
        let drawn: Vec<usize> = (0..2000).map(|_| random.within(5, 9)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&5), Some(&9)));
        assert!((0..2000).all(|_| random.below(3) < 3));
    }
}
