//! What one run of a workload or command reports: the record that travels from process to lab, to the results file, to the page.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of a workload, as its process prints it.
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
    /// Processor time of it in the program.
    pub(crate) user_ns: u64,
    /// Processor time of it in the kernel.
    pub(crate) system_ns: u64,
    /// Page faults in it.
    pub(crate) minor_faults: u64,
    /// Page faults of the whole process, up to its report.
    pub(crate) process_faults: u64,
    /// Largest resident size in the measured section.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Resident size when the section began.
    pub(crate) start_rss_bytes: Option<u64>,
    /// Of everything read back; equal for every allocator.
    pub(crate) checksum: u64,
    /// Further figures of this workload, by name with unit.
    pub(crate) figures: BTreeMap<String, f64>,
    /// Latencies, where the workload keeps them.
    pub(crate) latency: Option<Latency>,
    /// Resident bytes over time (milliseconds since the section began), where the workload samples them.
    pub(crate) rss_series: Vec<(u64, u64)>,
    /// Hardware counters, or why there are none.
    pub(crate) counters: Counters,
    /// The file that answered `malloc`.
    pub(crate) malloc_library: String,
    /// The allocator's version as it states it.
    pub(crate) allocator_version: String,
    /// Whether the allocator was taken out: the cost of the loop alone.
    pub(crate) hollow: bool,
}

/// Latencies of single operations in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// Operations recorded.
    pub(crate) count: u64,
    /// (percentile, nanoseconds), rising.
    pub(crate) percentiles: Vec<(f64, u64)>,
    /// The slowest.
    pub(crate) max_ns: u64,
    /// Cost of reading the clock twice, contained in every value.
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
    /// Not to be had, and why.
    Absent(String),
}
