//! How far the next sample is, and what a sample stands for: numbers in, numbers out.
//!
//! The distances between sampled bytes are exponential: that is a Poisson process, which has no memory, so what was sampled before says nothing of
//! what will be. A block is sampled if one of its bytes is.

use crate::heap_profile::tally::Weight;

/// ln 2.
const LN_2: f64 = core::f64::consts::LN_2;

/// The natural logarithm of a number, normal and above 0, to within 10⁻⁹. Straight code: it is part of what a sample costs.
#[inline]
fn ln(number: f64) -> f64 {
    const EXPONENT_BITS: u64 = 0x7FF << 52;
    let bits = number.to_bits();
    let mut exponent = ((bits & EXPONENT_BITS) >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(bits & !EXPONENT_BITS | 1023 << 52);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); the fraction is below 0.172, so five terms are right to 10⁻⁹.
    let fraction = (mantissa - 1.0) / (mantissa + 1.0);
    let square = fraction * fraction;
    let series = (((square / 9.0 + 1.0 / 7.0) * square + 1.0 / 5.0) * square + 1.0 / 3.0) * square + 1.0;
    f64::from(exponent) * LN_2 + 2.0 * fraction * series
}

/// 1 - exp(-x), for x of 0 or more, exact for small ones too.
pub(crate) fn one_less_exp(x: f64) -> f64 {
    // What is beyond is 1 to a double.
    let x = if x < 64.0 { x } else { 64.0 };
    let (mut part, mut n_doublings) = (x, 0);
    while part > 0.25 {
        part /= 2.0;
        n_doublings += 1;
    }
    // 1 - exp(-p) = p (1 - p/2 (1 - p/3 (1 - …))).
    let series = part * (2..16).rev().fold(1.0, |inner, n| 1.0 - part / f64::from(n) * inner);
    // 1 - exp(-2p) = f (2 - f) of f = 1 - exp(-p).
    (0..n_doublings).fold(series, |f, _| f * (2.0 - f))
}

/// Bytes until the next sampled one, if one in `interval` is, from a random number.
#[inline]
pub(crate) fn bytes_until(interval: u64, random: u64) -> f64 {
    // Above 0, and 1 at most.
    let uniform = ((random >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    // As signed numbers, which the processor converts by one instruction; no interval is that long.
    -ln(uniform) * interval as i64 as f64
}

/// Allocations of `block_bytes` until the next sampled one, that one included: geometric. 1 or more.
#[inline]
pub(crate) fn allocations_until(interval: u64, block_bytes: usize, random: u64) -> u64 {
    1 + (bytes_until(interval, random) / block_bytes as i64 as f64) as i64 as u64
}

/// What a sampled block of `bytes` stands for.
#[inline(never)]
pub(crate) fn weight_of(bytes: usize, interval: u64) -> Weight {
    let chance = one_less_exp(bytes as f64 / interval.max(1) as f64);
    Weight::new(1.0 / chance, bytes as f64 / chance)
}

#[cfg(test)]
mod tests;
