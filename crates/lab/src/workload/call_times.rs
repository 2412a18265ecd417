//! How long single calls take, as a histogram.

use crate::workload::workload_record::Latency;
use hdrhistogram::Histogram;
use std::time::Instant;

/// The percentiles of the record.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// See the module header.
pub(crate) struct CallTimes {
    histogram: Histogram<u64>,
}

impl CallTimes {
    /// No calls.
    pub(crate) fn new() -> Self {
        match Histogram::new_with_bounds(1, 10_000_000_000, 3) {
            Ok(histogram) => Self { histogram },
            Err(error) => unreachable!("the bounds of the histogram are constants: {error}"),
        }
    }

    /// Makes a call, and records how long it takes.
    pub(crate) fn time<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let result = call();
        self.histogram.saturating_record(began.elapsed().as_nanos() as u64);
        result
    }

    /// The slowest call, in milliseconds.
    pub(crate) fn slowest_ms(&self) -> f64 {
        self.histogram.max() as f64 / 1e6
    }

    /// The record of these calls and others.
    pub(crate) fn with(mut self, others: &Self) -> Self {
        // Both have the same bounds, so there is nothing that could be refused.
        let _ = self.histogram.add(&others.histogram);
        self
    }

    /// What the lab shows of them.
    pub(crate) fn latency(&self) -> Latency {
        let percentile = |percentile| (percentile, self.histogram.value_at_percentile(percentile));
        Latency {
            count: self.histogram.len(),
            percentiles: PERCENTILES.map(percentile).to_vec(),
            max_ns: self.histogram.max(),
            clock_ns: clock_cost_ns(),
        }
    }
}

/// Cost of reading the clock twice in nanoseconds: the median of many.
fn clock_cost_ns() -> u64 {
    let mut costs: Vec<u64> = (0..10_001).map(|_| Instant::now().elapsed().as_nanos() as u64).collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}
