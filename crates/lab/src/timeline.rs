//! The memory of a running command over time, every 50 ms: what the kernel counts as resident, and what Freestone says it holds.
//!
//! A command may be several processes. Every figure is a sum over those alive at the moment, as `/proc` and the library's report tell: a process's
//! figures count from its first line until its last, or until the kernel no longer knows the process. OS pages that a fork shares count once
//! in each process.
//!
//! ```text
//! the lab          RSS, at t                 t+50             t+100
//! process 7          │  live, dirty, committed (its background thread writes them; the clock is the same)
//! process 8          │        │
//!                    └ a row: the sum of each process's latest line
//! ```

use crate::exit_report::{Report, Sample};
use crate::workload::process_view::{monotonic_ms, os_page_bytes};
use crate::{plot, run};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Milliseconds between two samples.
pub(crate) const STEP_MS: u64 = 50;

/// What the kernel said at one moment.
struct Observation {
    /// On the monotonic clock.
    ms: u64,
    rss_bytes: u64,
    /// Processes alive.
    pids: Vec<u32>,
}

/// One moment: milliseconds since the first, and sums over processes. What the library says is absent where it has said nothing yet.
#[derive(Debug, PartialEq)]
struct Row {
    ms: u64,
    rss_bytes: u64,
    heap: Option<Heap>,
}

/// What the library holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Heap {
    live_bytes: u64,
    dirty_bytes: u64,
    committed_bytes: u64,
}

/// What was observed so far.
pub(crate) struct Timeline {
    next_ms: u64,
    observations: Vec<Observation>,
}

impl Timeline {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { next_ms: 0, observations: Vec::new() }
    }

    /// Looks at everything below the process `launcher`, if that is due.
    pub(crate) fn observe(&mut self, launcher: u32) {
        let ms = monotonic_ms();
        if ms < self.next_ms {
            return;
        }
        // From when it was due, so that the rows do not drift.
        self.next_ms = if self.next_ms == 0 { ms } else { self.next_ms } + STEP_MS;
        let mut observation = Observation { ms, rss_bytes: 0, pids: Vec::new() };
        observation.add_below(launcher);
        self.observations.push(observation);
    }

    /// Writes the rows as CSV, and a plot of them; returns the names of both files. FILE is the CSV and the plot is FILE.svg, unless FILE itself
    /// ends in `.svg`: then it is the plot, and the CSV ends in `.csv`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, file: &Path, report: &Report) -> Result<[PathBuf; 2]> {
        let [table, picture] = names(file);
        let rows = rows(&self.observations, report);
        fs::write(&table, csv(&rows)).with_context(|| format!("timeline {} cannot be written", table.display()))?;
        let title = "Memory over time, all processes together";
        let svg = plot::lines(title, "seconds", "MiB", &series(&rows), plot::Theme::Light)?;
        fs::write(&picture, svg).with_context(|| format!("plot {} cannot be written", picture.display()))?;
        Ok([table, picture])
    }
}

impl Observation {
    fn add_below(&mut self, pid: u32) {
        for child in run::children(pid) {
            let statm = fs::read_to_string(format!("/proc/{child}/statm")).ok();
            let os_pages = statm.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0);
            self.rss_bytes += os_pages * os_page_bytes();
            // One that has ended and was not waited for yet holds nothing.
            if os_pages > 0 {
                self.pids.push(child);
            }
            self.add_below(child);
        }
    }
}

/// The CSV and the plot.
fn names(file: &Path) -> [PathBuf; 2] {
    if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return [file.with_extension("csv"), file.to_path_buf()];
    }
    let mut picture = file.as_os_str().to_owned();
    picture.push(".svg");
    [file.to_path_buf(), picture.into()]
}

/// What the kernel and the library said, together: one walk over both, in the order of time.
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
        Row { ms: observation.ms - first_ms, rss_bytes: observation.rss_bytes, heap: Heap::sum(&alive) }
    };
    observations.iter().map(row).collect()
}

impl Heap {
    /// Of no process nothing is known.
    fn sum(samples: &[&Sample]) -> Option<Self> {
        let sum = |of: fn(&Sample) -> u64| samples.iter().map(|&sample| of(sample)).sum();
        (!samples.is_empty()).then(|| Self {
            live_bytes: sum(|sample| sample.live_bytes),
            dirty_bytes: sum(|sample| sample.dirty_bytes),
            committed_bytes: sum(|sample| sample.committed_bytes),
        })
    }
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from("milliseconds,rss_bytes,live_bytes,dirty_bytes,committed_bytes\n");
    for Row { ms, rss_bytes, heap } in rows {
        // Writing to a string does not fail.
        let _ = match heap {
            Some(heap) => {
                writeln!(text, "{ms},{rss_bytes},{},{},{}", heap.live_bytes, heap.dirty_bytes, heap.committed_bytes)
            }
            None => writeln!(text, "{ms},{rss_bytes},,,"),
        };
    }
    text
}

/// The lines of the plot; those of the library only if it said anything.
fn series(rows: &[Row]) -> Vec<plot::Series> {
    let line = |name: &str, of: &dyn Fn(&Row) -> Option<u64>| {
        let point = |row: &Row| Some((row.ms as f64 / 1e3, of(row)? as f64 / f64::from(1 << 20)));
        (name.to_owned(), rows.iter().filter_map(point).collect::<Vec<_>>())
    };
    let lines = [
        line("committed", &|row| row.heap.map(|heap| heap.committed_bytes)),
        line("resident", &|row| Some(row.rss_bytes)),
        line("live", &|row| row.heap.map(|heap| heap.live_bytes)),
        line("dirty", &|row| row.heap.map(|heap| heap.dirty_bytes)),
    ];
    lines.into_iter().filter(|(_, points)| !points.is_empty()).collect()
}

#[cfg(test)]
mod tests;
