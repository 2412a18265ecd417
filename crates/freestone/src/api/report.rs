//! The report: the file that `freestone run` reads, one line when the allocator starts, one when the process ends, and more under `report_ms`.
//!
//! Each line is one JSON object and is appended with a single write. The first proves that the allocator is in the process.
//!
//! Findings are appended to it as well (`misuse::finding`).

use crate::config::report_file::ReportFile;
use crate::stats::Stats;
use core::fmt::{self, Arguments, Display};
use freestone_base::text::FixedText;
use freestone_os::process;

/// Longest line in bytes.
const LINE_BYTES: usize = 1024;

/// Why a line with all counts is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The interval of the option `report_ms` has passed.
    Sample,
    /// The process ends.
    Exit,
}

impl Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sample => "sample",
            Self::Exit => "exit",
        })
    }
}

/// Appends the line that says the allocator is in the process.
pub(super) fn append_start(file: &ReportFile) {
    append(file, |pid| {
        line(format_args!(r#"{{"event":"start","pid":{pid},"version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
    });
}

/// Appends a line with all that is counted. `counted` returns the time and the statistics; it is called if there is a report.
pub(super) fn append_stats(file: &ReportFile, event: Event, counted: impl FnOnce() -> (u64, Stats)) {
    append(file, |pid| {
        let (now_ms, stats) = counted();
        stats_line(event, pid, now_ms, &stats)
    });
}

/// Appends a line, if there is a report.
fn append(file: &ReportFile, line: impl FnOnce(i32) -> FixedText<LINE_BYTES>) {
    if file.is_set() {
        append_now(file, line);
    }
}

/// Appends a line. A function of its own, so that no process without a report touches the OS pages of the stack that a line takes.
#[inline(never)]
fn append_now(file: &ReportFile, line: impl FnOnce(i32) -> FixedText<LINE_BYTES>) {
    file.append(line(process::id()).as_bytes());
}

fn stats_line(event: Event, pid: i32, now_ms: u64, stats: &Stats) -> FixedText<LINE_BYTES> {
    line(format_args!(
        concat!(
            r#"{{"event":"{}","pid":{},"ms":{},"allocations":{},"frees":{},"remote_frees":{},"handovers":{},"#,
            r#""live_bytes":{},"peak_live_bytes":{},"committed_bytes":{},"resident_bytes":{},"peak_committed_bytes":{},"purged_bytes":{},"#,
            r#""fresh_bytes":{},"cached_bytes":{},"fragmented_bytes":{},"dirty_bytes":{},"metadata_bytes":{},"threads":{}}}"#
        ),
        event,
        pid,
        now_ms,
        stats.n_allocations,
        stats.n_frees,
        stats.n_remote_frees,
        stats.n_handovers,
        stats.live,
        stats.peak_live,
        stats.committed,
        stats.resident(),
        stats.peak_committed,
        stats.purged,
        stats.fresh,
        stats.cached,
        stats.fragmented,
        stats.dirty,
        stats.metadata,
        stats.n_threads
    ))
}

fn line(text: Arguments<'_>) -> FixedText<LINE_BYTES> {
    let mut line = FixedText::new();
    // Writing into `FixedText` cannot fail: what does not fit is cut off.
    let _ = writeln!(line, "{text}");
    line
}

#[cfg(test)]
mod tests;
