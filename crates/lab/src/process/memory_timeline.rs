//! The memory of a running command over time, every 50 ms: resident size from the kernel, heap figures from Freestone's report.
//!
//! A command may consist of several processes. Every figure is a sum over the processes alive at that moment, from `/proc` and the report. A
//! process counts from its first line in the report until the kernel no longer lists it. OS pages that processes share after a fork count
//! once in each of them.
//!
//! ```text
//! lab              RSS, at t                 t+50             t+100
//! process 7          │  live, dirty, committed (its background thread writes them, with times of the same clock)
//! process 8          │        │
//!                    └ a row: the sum of each process's latest line
//! ```

use crate::process::exit_report::{Report, Sample};
use crate::process::monotonic_clock::monotonic_ms;
use crate::workload::own_process::os_page_bytes;
use std::collections::BTreeMap;
use std::fs;

/// Milliseconds between two samples.
pub(crate) const STEP_MS: u64 = 50;

/// What the kernel showed at one moment.
struct Observation {
    /// Time on the monotonic clock.
    ms: u64,
    rss_bytes: u64,
    /// Processes alive.
    pids: Vec<u32>,
}

/// One moment: sums over all processes.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// Milliseconds since the first row.
    pub(crate) ms: u64,
    /// Resident size.
    pub(crate) rss_bytes: u64,
    /// What the library reported; `None` before its first report.
    pub(crate) heap: Option<HeapBytes>,
}

/// What the library's heaps held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HeapBytes {
    /// Bytes in live blocks.
    pub(crate) live_bytes: u64,
    /// Bytes of free page runs that still hold physical memory.
    pub(crate) dirty_bytes: u64,
    /// Bytes that may hold physical memory.
    pub(crate) committed_bytes: u64,
}

/// The observations so far.
pub(crate) struct Timeline {
    next_ms: u64,
    observations: Vec<Observation>,
}

impl Timeline {
    /// An empty timeline.
    pub(crate) fn new() -> Self {
        Self { next_ms: 0, observations: Vec::new() }
    }

    /// Observes the descendants of the process `launcher`, if an observation is due.
    pub(crate) fn observe(&mut self, launcher: u32) {
        let ms = monotonic_ms();
        if ms < self.next_ms {
            return;
        }
        // The next one is due a step after this one was due, not after it happened, so that the rows do not drift.
        self.next_ms = if self.next_ms == 0 { ms } else { self.next_ms } + STEP_MS;
        let mut observation = Observation { ms, rss_bytes: 0, pids: Vec::new() };
        observation.add_descendants(launcher);
        self.observations.push(observation);
    }

    /// The rows: each observation with the latest samples in `report`.
    pub(crate) fn rows(&self, report: &Report) -> Vec<Row> {
        rows(&self.observations, report)
    }
}

impl Observation {
    fn add_descendants(&mut self, pid: u32) {
        for child in children(pid) {
            let statm = fs::read_to_string(format!("/proc/{child}/statm")).ok();
            let os_pages = statm.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0);
            self.rss_bytes += os_pages * os_page_bytes();
            // A process that has exited and has not been waited for has no memory left.
            if os_pages > 0 {
                self.pids.push(child);
            }
            self.add_descendants(child);
        }
    }
}

/// The children of the process `pid`, as the kernel lists them.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let text: String = threads.map(of_thread).collect();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Merges observations and samples in the order of time.
fn rows(observations: &[Observation], report: &Report) -> Vec<Row> {
    let first_ms = observations.first().map_or(0, |observation| observation.ms);
    let mut samples: Vec<&Sample> = report.samples.iter().collect();
    samples.sort_by_key(|sample| sample.ms);
    let mut samples = samples.into_iter().peekable();
    let mut latest = BTreeMap::new();
    let row = |observation: &Observation| {
        while let Some(sample) = samples.next_if(|sample| sample.ms <= observation.ms) {
            latest.insert(sample.pid, sample);
        }
        let alive: Vec<&Sample> = observation.pids.iter().filter_map(|pid| latest.get(pid).copied()).collect();
        Row { ms: observation.ms - first_ms, rss_bytes: observation.rss_bytes, heap: HeapBytes::sum(&alive) }
    };
    observations.iter().map(row).collect()
}

impl HeapBytes {
    /// The sum of `samples`; `None` if there are none.
    fn sum(samples: &[&Sample]) -> Option<Self> {
        let sum = |of: fn(&Sample) -> u64| samples.iter().map(|&sample| of(sample)).sum();
        (!samples.is_empty()).then(|| Self {
            live_bytes: sum(|sample| sample.live_bytes),
            dirty_bytes: sum(|sample| sample.dirty_bytes),
            committed_bytes: sum(|sample| sample.committed_bytes),
        })
    }
}

#[cfg(test)]
mod tests;
