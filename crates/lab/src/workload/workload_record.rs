//! What one run of a workload reports: the record that goes from its process to the lab and into the results file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of a workload, as its process prints it.
///
/// Wide because: the format of the results file is flat, with a key per figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkloadRecord {
    /// The workload's name.
    pub(crate) workload: String,
    /// Its parameters.
    pub(crate) params: BTreeMap<String, u64>,
    /// Operations in the measured section.
    pub(crate) operations: u64,
    /// Wall-clock time of the measured section.
    pub(crate) wall_ns: u64,
    /// Processor time of the section in user mode.
    pub(crate) user_ns: u64,
    /// Processor time of the section in the kernel.
    pub(crate) system_ns: u64,
    /// Page faults of the section.
    pub(crate) minor_faults: u64,
    /// Page faults of the whole process up to this report.
    pub(crate) process_faults: u64,
    /// Largest resident size during the section.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Resident size when the section began.
    pub(crate) start_rss_bytes: Option<u64>,
    /// Checksum of everything read back; the same under every allocator.
    pub(crate) checksum: u64,
    /// Further figures of this workload; each name states the unit.
    pub(crate) figures: BTreeMap<String, f64>,
    /// Latencies, if the workload measures them.
    pub(crate) latency: Option<Latency>,
    /// (milliseconds since the section began, resident bytes), if the workload samples them.
    pub(crate) rss_series: Vec<(u64, u64)>,
    /// Hardware counters, or why there are none.
    pub(crate) counters: Counters,
    /// The library that answered `malloc`.
    pub(crate) malloc_library: String,
    /// The version that the allocator states.
    pub(crate) allocator_version: String,
    /// Whether the workload ran over the null allocator, and the figures are those of its loop alone.
    #[serde(rename = "null_allocator", alias = "hollow")]
    pub(crate) on_null_allocator: bool,
}

/// Latencies of single operations in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// Number of operations.
    pub(crate) count: u64,
    /// (percentile, nanoseconds), in ascending order.
    pub(crate) percentiles: Vec<(f64, u64)>,
    /// The slowest operation.
    pub(crate) max_ns: u64,
    /// Cost of reading the clock twice, which every value includes.
    pub(crate) clock_ns: u64,
}

/// Hardware counters of the measured section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Counters {
    /// Counted.
    Counted {
        /// Processor cycles.
        cycles: u64,
        /// Instructions retired.
        instructions: u64,
        /// Last-level cache misses.
        cache_misses: u64,
    },
    /// Not available; the text says why.
    Absent(String),
}

#[cfg(test)]
impl WorkloadRecord {
    /// A record for tests: 1000 operations of `latency_tail` in 100 µs.
    pub(crate) fn example() -> Self {
        Self {
            workload: "latency_tail".into(),
            params: BTreeMap::new(),
            operations: 1000,
            wall_ns: 100_000,
            user_ns: 1,
            system_ns: 1,
            minor_faults: 1,
            process_faults: 100,
            peak_rss_bytes: Some(1 << 20),
            start_rss_bytes: None,
            checksum: 7,
            figures: BTreeMap::new(),
            latency: None,
            rss_series: Vec::new(),
            counters: Counters::Absent("none".into()),
            malloc_library: "libc.so".into(),
            allocator_version: "1".into(),
            on_null_allocator: false,
        }
    }
}
