//! The figures over time, and what happens in a second.

use freestone::Stats;
use freestone::door::live::{CLASS_ROWS, LiveState};
use std::collections::VecDeque;

/// Samples that are kept: ten minutes at two a second.
const KEPT: usize = 1200;

/// Milliseconds over which rates are taken, at least, if there are samples of that age.
const RATE_MS: u64 = 950;

/// The figures of a moment.
struct Moment {
    at_ms: u64,
    stats: Stats,
    allocations: [u64; CLASS_ROWS],
}

/// What happens in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Blocks allocated.
    pub(super) allocations: f64,
    /// Blocks freed.
    pub(super) frees: f64,
    /// Of these, blocks freed in another heap's span.
    pub(super) remote_frees: f64,
    /// Bytes handed out without memory behind them.
    pub(super) fresh: f64,
    /// Bytes given back to the kernel.
    pub(super) purged: f64,
    /// Blocks allocated, by size class; empty before there are rates.
    pub(super) by_class: Vec<f64>,
}

/// The samples, oldest first.
#[derive(Default)]
pub(super) struct Sampler {
    moments: VecDeque<Moment>,
    /// Number of the state that was added last.
    number: u64,
}

impl Sampler {
    /// Adds a state; nothing if it is the same as the last. Returns whether it was added.
    pub(super) fn add(&mut self, state: &LiveState) -> bool {
        if state.number == self.number && !self.moments.is_empty() {
            return false;
        }
        if state.number < self.number {
            // Another program runs in the process now.
            self.moments.clear();
        }
        self.number = state.number;
        if self.moments.len() == KEPT {
            self.moments.pop_front();
        }
        let allocations = std::array::from_fn(|class| state.classes[class].n_allocations);
        self.moments.push_back(Moment { at_ms: state.at_ms, stats: state.stats, allocations });
        true
    }

    /// A figure over time, oldest first: the last `n` samples.
    pub(super) fn series(&self, n: usize, figure: impl Fn(&Stats) -> u64) -> Vec<u64> {
        let first = self.moments.len().saturating_sub(n);
        self.moments.iter().skip(first).map(|moment| figure(&moment.stats)).collect()
    }

    /// What happens in a second: between the last sample and the youngest that is old enough, or the oldest.
    pub(super) fn rates(&self) -> Rates {
        let Some(last) = self.moments.back() else { return Rates::default() };
        let is_old_enough = |moment: &&Moment| last.at_ms - moment.at_ms >= RATE_MS;
        let before = self.moments.iter().rev().find(is_old_enough).or(self.moments.front());
        let Some(before) = before.filter(|before| before.at_ms < last.at_ms) else { return Rates::default() };
        let seconds = (last.at_ms - before.at_ms) as f64 / 1000.0;
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        Rates {
            allocations: rate(last.stats.n_allocations, before.stats.n_allocations),
            frees: rate(last.stats.n_frees, before.stats.n_frees),
            remote_frees: rate(last.stats.n_remote_frees, before.stats.n_remote_frees),
            fresh: rate(last.stats.fresh, before.stats.fresh),
            purged: rate(last.stats.purged, before.stats.purged),
            by_class: last.allocations.iter().zip(before.allocations).map(|(&now, then)| rate(now, then)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
