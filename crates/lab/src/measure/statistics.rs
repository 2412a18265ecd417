//! Medians, ratios, and which differences may be claimed.
//!
//! The unit of comparison is the ratio within a round: both sides ran within seconds of each other, so a disturbance of the machine affects
//! both. The summary is the median ratio with a bootstrap interval (Efron 1979, percentile method, 95 %).
//!
//! With the few rounds that a person waits for, such an interval is too narrow. Two runs of the same build must not differ in one of a
//! hundred figures by chance. Therefore a difference is claimed only if the interval excludes 1, the median is at least 1 % from 1, and one
//! of two tests passes:
//!
//! - Student's paired t-test on the logarithms of the ratios at 99.99 %. From five rounds on, the round furthest from the median is left
//!   out, because a single disturbed round would hide a factor of two. Leaving it out makes the spread look smaller than it is and multiplies
//!   the rate of false claims by about five, hence the strict level.
//! - From eight rounds on, complete separation: all rounds of one are below all rounds of the other (by chance: 1 in 6435 at eight rounds;
//!   Mann and Whitney 1947).
//!
//! Everything else is "no difference seen". A test holds the rate of false claims under 1 in 1000.

use serde::{Deserialize, Serialize};

/// What a comparison allows to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The ratio is below 1, and chance does not explain it.
    Less,
    /// The ratio is above 1, and chance does not explain it.
    More,
    /// The rounds do not distinguish the two.
    NoDifferenceSeen,
}

/// The ratio of two allocators in one figure.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ratio {
    /// Median over the rounds.
    pub(crate) median: f64,
    /// Lower end of the 95 % bootstrap interval.
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
    /// Number of rounds that both took part in.
    pub(crate) rounds: usize,
    /// What may be claimed.
    pub(crate) verdict: Verdict,
}

impl Ratio {
    /// Whether the interval includes 1.
    pub(crate) fn includes_one(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }

    /// Whether the median is too close to 1 for a claim.
    pub(crate) fn is_small(&self) -> bool {
        (self.median - 1.0).abs() < RESOLUTION
    }
}

/// Smaller differences are not claimed: the layout of code and of the address space alone changes a run by as much.
const RESOLUTION: f64 = 0.01;

/// Rounds from which complete separation is tested; with fewer, only the steadiest differences can be claimed.
pub(crate) const ENOUGH_ROUNDS: usize = 8;

/// Two-sided 99.99 % points of Student's t for 1, 2, … degrees of freedom.
const T_9999: [f64; 20] = [
    6366.0, 99.99, 28.00, 15.54, 11.18, 9.082, 7.885, 7.120, 6.594, 6.211, 5.921, 5.694, 5.513, 5.363, 5.239, 5.134,
    5.044, 4.966, 4.897, 4.837,
];

/// The median; `None` if there are no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        len if len % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Half the distance between the quartiles, relative to the median: how much the rounds vary.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match median(&sorted) {
        Some(middle) if sorted.len() >= 3 && middle > 0.0 => {
            let quarter = sorted.len() / 4;
            (sorted[sorted.len() - 1 - quarter] - sorted[quarter]) / 2.0 / middle
        }
        _ => 0.0,
    }
}

/// Compares two series of rounds pair by pair; `None` if no pair has two positive values.
pub(crate) fn compare(ours: &[f64], base: &[f64]) -> Option<Ratio> {
    let ratios: Vec<f64> = ours
        .iter()
        .zip(base)
        .filter(|&(&ours, &base)| ours > 0.0 && base > 0.0)
        .map(|(ours, base)| ours / base)
        .collect();
    let middle = median(&ratios)?;
    let (low, high) = bootstrap_interval(&ratios);
    let straddles = low <= 1.0 && high >= 1.0;
    let differs = !straddles && (middle - 1.0).abs() >= RESOLUTION && is_beyond_chance(&ratios, ours, base);
    let verdict = match (differs, middle < 1.0) {
        (false, _) => Verdict::NoDifferenceSeen,
        (true, true) => Verdict::Less,
        (true, false) => Verdict::More,
    };
    Some(Ratio { median: middle, low, high, rounds: ratios.len(), verdict })
}

/// Whether one of the two tests passes.
fn is_beyond_chance(ratios: &[f64], ours: &[f64], base: &[f64]) -> bool {
    differs_by_t(ratios) || are_separate(ours, base)
}

/// Student's paired t-test on the logarithms at 99.99 %, from five rounds on without the one furthest from the median.
fn differs_by_t(ratios: &[f64]) -> bool {
    let mut logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    if logs.len() < 2 {
        return false;
    }
    if logs.len() >= 5 {
        let middle = median(&logs).unwrap_or(0.0);
        logs.sort_by(|a, b| (a - middle).abs().total_cmp(&(b - middle).abs()));
        logs.pop();
    }
    let n = logs.len();
    let mean = logs.iter().sum::<f64>() / n as f64;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let standard_error = (variance / n as f64).sqrt();
    mean.abs() > T_9999[(n - 2).min(T_9999.len() - 1)] * standard_error
}

/// Whether all rounds of one are below all rounds of the other, and there are enough of them.
fn are_separate(ours: &[f64], base: &[f64]) -> bool {
    let highest = |values: &[f64]| values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min);
    ours.len().min(base.len()) >= ENOUGH_ROUNDS && (highest(ours) < lowest(base) || highest(base) < lowest(ours))
}

/// The 95 % percentile bootstrap interval of the median. The resampling is deterministic.
fn bootstrap_interval(values: &[f64]) -> (f64, f64) {
    const RESAMPLES: usize = 2000;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[(state >> 33) as usize % values.len()]
    };
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let sample: Vec<f64> = values.iter().map(|_| draw()).collect();
            median(&sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40])
}

#[cfg(test)]
mod tests;
