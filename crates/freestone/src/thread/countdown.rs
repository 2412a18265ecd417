//! Countdowns to the next sample, in units: allocations, or bytes.
//!
//! Each unit is sampled with the same chance, whatever was sampled before: so the distance from one sample to the next is geometric, and no pattern
//! of the program can stay between the samples.

use core::cell::Cell;

/// Counts down to the next sample. Zero is one that has not begun.
#[derive(Debug)]
pub(crate) struct Countdown {
    /// Units until the next sample, that one included; 0 before the first draw.
    left: Cell<u64>,
}

impl Countdown {
    /// Not begun.
    pub(crate) const fn new() -> Self {
        Self { left: Cell::new(0) }
    }

    /// Units until the next sample, the sampled one included, if one in `mean` is sampled.
    fn left(&self, mean: u64, random: impl FnOnce() -> u64) -> u64 {
        if self.left.get() == 0 {
            self.left.set(units_until(mean, random()));
        }
        self.left.get()
    }

    /// Counts units, unless the countdown would end with them. Returns whether it did.
    #[inline]
    pub(crate) fn skip(&self, units: u64) -> bool {
        let left = self.left.get();
        let is_far = left > units;
        if is_far {
            self.left.set(left - units);
        }
        is_far
    }

    /// Counts units. Returns how many samples fell among them; no more than [`AT_ONCE`], after which the countdown begins anew.
    pub(crate) fn pass(&self, units: u64, mean: u64, random: impl Fn() -> u64) -> u32 {
        let (mut left, mut units, mut n) = (self.left(mean, &random), units, 0);
        while units >= left {
            n += 1;
            units = if n < AT_ONCE { units - left } else { 0 };
            left = units_until(mean, random());
        }
        self.left.set(left - units);
        n
    }
}

/// Samples that fall among units that are counted at once, at most.
const AT_ONCE: u32 = 64;

/// Units until the next sample, the sampled one included, if one in `mean` is sampled: geometric, from a random number. 1 or more; always 1
/// if `mean` is 1.
#[must_use]
pub(crate) fn units_until(mean: u64, random: u64) -> u64 {
    if mean <= 1 {
        return 1;
    }
    // The logarithm of a random number between 0 and 1 is exponential, and its whole part after scaling geometric.
    let nats = u128::from(minus_ln(random));
    1 + ((u128::from(mean) * nats) >> FRACTION_BITS) as u64
}

/// Bits behind the point of a logarithm.
const FRACTION_BITS: u32 = 32;

/// -ln(random / 2^64), to within a hundredth: the whole part of the binary logarithm by counting zeros, the rest by a parabola.
fn minus_ln(random: u64) -> u64 {
    /// ln 2.
    const LN_2: u64 = 0xB172_17F7;
    /// The parabola's height over the chord, which makes its error smallest.
    const BULGE: u64 = 0x5800_0000;
    let random = random | 1;
    let zeros = random.leading_zeros();
    // The fraction behind the highest bit.
    let fraction = (u128::from(random) << (zeros + 1)) as u64 >> (64 - FRACTION_BITS);
    let rest = (1 << FRACTION_BITS) - fraction;
    let bulge = (u128::from(fraction) * u128::from(rest) * u128::from(BULGE)) >> (2 * FRACTION_BITS);
    let log2 = (u64::from(zeros) << FRACTION_BITS) + rest - bulge as u64;
    ((u128::from(log2) * u128::from(LN_2)) >> FRACTION_BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomNumbers;

    fn numbers() -> impl Iterator<Item = u64> {
        let source = RandomNumbers::new();
        core::iter::repeat_with(move || source.draw(|| 1))
    }

    #[test]
    fn the_logarithm_is_right_to_a_hundredth() {
        for random in
            numbers().take(if cfg!(miri) { 300 } else { 10_000 }).chain([1, 2, 3, u64::MAX, 1 << 63, u64::MAX / 3])
        {
            let exact = -((random | 1) as f64 / 18_446_744_073_709_551_616.0).ln();
            let found = minus_ln(random) as f64 / f64::from(2).powi(FRACTION_BITS as i32);
            assert!((exact - found).abs() < 0.01, "{random:#x}: {exact} {found}");
        }
    }

    #[test]
    fn one_in_as_many_as_asked_is_sampled_and_their_distance_is_geometric() {
        const N: usize = if cfg!(miri) { 2000 } else { 200_000 };
        let exact = if cfg!(miri) { 0.1 } else { 0.01 };
        for rate in [2u64, 100, 5000] {
            let distances: std::vec::Vec<u64> = numbers().take(N).map(|random| units_until(rate, random)).collect();
            let mean = distances.iter().sum::<u64>() as f64 / N as f64;
            // A whole part is half a step less than what it is of; rates of some thousands do not see it.
            assert!((mean / rate as f64 - 1.0).abs() < if rate == 2 { 0.35 } else { 2.0 * exact }, "{rate}: {mean}");
            let beyond = distances.iter().filter(|&&distance| distance > rate).count() as f64 / N as f64;
            assert!((beyond - 0.368).abs() < if rate == 2 { 0.2 } else { exact }, "{rate}: {beyond}");
        }
    }

    #[test]
    fn units_are_sampled_at_the_same_rate_however_many_pass_at_once() {
        let source = RandomNumbers::new();
        let (n_units, expected) = if cfg!(miri) { (60_000, 36..84) } else { (6_000_000, 5700..6300) };
        for at_once in [1, 7, 60, 10_000] {
            let (countdown, mean) = (Countdown::new(), 1000);
            let n: u32 = (0..n_units / at_once).map(|_| countdown.pass(at_once, mean, || source.draw(|| 1))).sum();
            assert!(expected.contains(&n), "{at_once}: {n}");
        }
    }

    #[test]
    fn a_countdown_ends_with_the_unit_that_it_says() {
        let source = RandomNumbers::new();
        let random = || source.draw(|| 3);
        let countdown = Countdown::new();
        let left = countdown.left(50, random);
        assert_eq!(countdown.pass(left - 1, 50, random), 0);
        assert_eq!(countdown.left(50, random), 1);
        assert_eq!(countdown.pass(1, 50, random), 1);
        assert_eq!(countdown.pass(0, 50, random), 0);
    }

    #[test]
    fn so_many_units_at_once_that_most_are_not_looked_at_begin_the_countdown_anew() {
        let source = RandomNumbers::new();
        let countdown = Countdown::new();
        assert_eq!(countdown.pass(u64::MAX, 1, || source.draw(|| 3)), AT_ONCE);
        assert_eq!(countdown.left(1, || 1), 1);
    }

    #[test]
    fn units_are_skipped_only_if_the_end_is_farther_away() {
        let countdown = Countdown::new();
        assert!(!countdown.skip(0), "nothing was drawn");
        let left = countdown.left(1000, || 12_345);
        assert!(!countdown.skip(left));
        assert_eq!(countdown.left(1000, || 1), left);
        assert!(countdown.skip(left - 1));
        assert_eq!(countdown.left(1000, || 1), 1);
    }

    #[test]
    fn the_next_unit_is_the_first_that_may_be_sampled() {
        assert_eq!([1, 2, 1000].map(|mean| units_until(mean, u64::MAX)), [1; 3]);
        assert_eq!([0, 1, 10].map(|mean| units_until(mean, 1 << 63)), [1, 1, 1 + 6], "ten times the logarithm of 2");
    }

    #[test]
    fn every_unit_is_sampled_if_one_in_one_is() {
        assert!(numbers().take(100).all(|random| units_until(1, random) == 1));
    }
}
