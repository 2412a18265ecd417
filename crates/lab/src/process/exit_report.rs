//! Reads the file named by `FREESTONE_REPORT`, in which libfreestone reports of every process it is loaded into.
//!
//! Each process appends a line when the library starts, which proves that the library is loaded; a line with a sample at every step, if
//! `FREESTONE_REPORT_MS` is set; and a line when the process exits. A process with a first line and no last one was killed, or left through
//! `_exit`, or goes on after the command: its figures are those of its last state ([`super::last_states`]), if it left one; else only the kernel's remain.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The environment variable that names the file.
pub(crate) const VARIABLE: &str = "FREESTONE_REPORT";
/// The environment variable that sets the step between samples, in milliseconds.
pub(crate) const STEP_VARIABLE: &str = "FREESTONE_REPORT_MS";

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Start { pid: u32, version: String },
    Sample(Sample),
    Exit(Exit),
}

/// What the heap of one process held at one moment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Sample {
    /// Process number.
    pub(crate) pid: u32,
    /// Time on the kernel's monotonic clock.
    pub(crate) ms: u64,
    /// Bytes in live blocks.
    pub(crate) live_bytes: u64,
    /// Bytes of free page runs that still hold physical memory.
    pub(crate) dirty_bytes: u64,
    /// Bytes that may hold physical memory.
    pub(crate) committed_bytes: u64,
}

/// Statistics of the heap of one process at its exit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Exit {
    /// Process number.
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
    /// Bytes returned to the kernel.
    pub(crate) purged_bytes: u64,
    /// Threads that used the heap.
    pub(crate) threads: u64,
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Version of the library, from the first line.
    pub(crate) version: Option<String>,
    /// Processes that loaded the library.
    pub(crate) started: usize,
    /// Statistics of those that reported their exit.
    pub(crate) exits: Vec<Exit>,
    /// Statistics of others when they wrote their last state.
    pub(crate) last_states: Vec<Exit>,
    /// Processes that had not ended when the command had.
    pub(crate) running: Vec<u32>,
    /// Processes that reported no exit.
    pub(crate) silent: BTreeSet<u32>,
    /// Samples taken while the processes ran, in the order of the file.
    pub(crate) samples: Vec<Sample>,
}

impl Report {
    /// Reads the file. A missing file is empty; lines of another kind are skipped.
    pub(crate) fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut report = Self::default();
        let mut started = BTreeSet::new();
        for line in text.lines() {
            // A process that ends while it writes leaves a part of a line, and the next line follows it.
            let whole = line.rfind(r#"{"event""#).map_or(line, |start| &line[start..]);
            match serde_json::from_str(whole) {
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
        report.silent = started;
        report.exits.iter().for_each(|exit| _ = report.silent.remove(&exit.pid));
        report
    }

    /// Adds what processes held last, as far as they did not report their exit. A page proves as well that the library was in its process.
    pub(crate) fn add_last_states(&mut self, states: Vec<Exit>) {
        self.last_states = states;
        self.last_states.retain(|state| self.exits.iter().all(|exit| exit.pid != state.pid));
        self.started = self.started.max(self.processes().count());
    }

    /// Notes which of the processes that did not report their exit have not ended.
    pub(crate) fn note_running(&mut self, is_running: impl Fn(u32) -> bool) {
        self.silent.extend(self.last_states.iter().map(|state| state.pid));
        self.running = self.silent.iter().copied().filter(|&pid| is_running(pid)).collect();
    }

    /// The processes of which there are figures.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Exit> {
        self.exits.iter().chain(&self.last_states)
    }

    /// Processes of which there are no figures.
    pub(crate) fn without_figures(&self) -> usize {
        self.started.saturating_sub(self.processes().count())
    }

    /// The sum of a figure over all processes.
    pub(crate) fn sum(&self, figure: impl Fn(&Exit) -> u64) -> u64 {
        self.processes().map(figure).sum()
    }

    /// The process with the highest peak of live bytes.
    pub(crate) fn largest(&self) -> Option<&Exit> {
        self.processes().max_by_key(|exit| (exit.peak_live_bytes, exit.peak_committed_bytes))
    }
}

#[cfg(test)]
mod tests;
