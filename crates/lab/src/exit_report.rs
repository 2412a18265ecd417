//! What libfreestone says of the processes it was in: the file `FREESTONE_REPORT` names.
//!
//! Each process appends one line when the library starts (the proof that it was there), one every so often if that is asked for, and one when the
//! process exits. A process that starts and never
//! exits was killed, or left through `_exit`; its own figures are then unknown, and the kernel's are all there is.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// Name of the environment variable.
pub(crate) const VARIABLE: &str = "FREESTONE_REPORT";
/// Name of the environment variable that says how often, in milliseconds.
pub(crate) const STEP_VARIABLE: &str = "FREESTONE_REPORT_MS";

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Start { pid: u32, version: String },
    Sample(Sample),
    Exit(Exit),
}

/// What one process held at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Sample {
    /// Which process.
    pub(crate) pid: u32,
    /// When, on the kernel's monotonic clock.
    pub(crate) ms: u64,
    /// Bytes in live blocks.
    pub(crate) live_bytes: u64,
    /// Bytes in free runs that still have memory behind them.
    pub(crate) dirty_bytes: u64,
    /// Bytes that may have memory behind them.
    pub(crate) committed_bytes: u64,
}

/// Statistics of one process at its exit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Exit {
    /// Which process.
    pub(crate) pid: u32,
    /// Blocks allocated.
    pub(crate) allocations: u64,
    /// Blocks freed.
    pub(crate) frees: u64,
    /// Bytes in live blocks at exit.
    pub(crate) live_bytes: u64,
    /// Most bytes in live blocks.
    pub(crate) peak_live_bytes: u64,
    /// Bytes committed at exit.
    pub(crate) committed_bytes: u64,
    /// Most bytes committed.
    pub(crate) peak_committed_bytes: u64,
    /// Bytes given back to the kernel.
    pub(crate) purged_bytes: u64,
    /// Threads that used the heap.
    pub(crate) threads: u64,
}

/// The file's story.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Version of the library, from its first line.
    pub(crate) version: Option<String>,
    /// Processes it was in.
    pub(crate) started: usize,
    /// Statistics of those that exited in order.
    pub(crate) exits: Vec<Exit>,
    /// What processes held while they ran, in the order in which it was written.
    pub(crate) samples: Vec<Sample>,
}

impl Report {
    /// Reads the file; a file that is not there, or lines of another kind, tell nothing.
    pub(crate) fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut report = Self::default();
        let mut started = BTreeSet::new();
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Line::Start { pid, version }) => {
                    started.insert(pid);
                    report.version.get_or_insert(version);
                }
                Ok(Line::Sample(sample)) => report.samples.push(sample),
                Ok(Line::Exit(exit)) => {
                    started.insert(exit.pid);
                    report.exits.push(exit);
                }
                Err(_) => {}
            }
        }
        report.started = started.len();
        report
    }

    /// Processes that never said how they ended.
    pub(crate) fn unfinished(&self) -> usize {
        self.started.saturating_sub(self.exits.len())
    }

    /// A sum over the processes that exited in order.
    pub(crate) fn sum(&self, figure: impl Fn(&Exit) -> u64) -> u64 {
        self.exits.iter().map(figure).sum()
    }

    /// The process that held most memory, among those that exited in order.
    pub(crate) fn largest(&self) -> Option<&Exit> {
        self.exits.iter().max_by_key(|exit| (exit.peak_live_bytes, exit.peak_committed_bytes))
    }
}

#[cfg(test)]
mod tests;
