//! The report: the file that `freestone run` reads, one line when the allocator starts, one when the process ends, and more under `report_ms`.
//!
//! Each line is one JSON object and is appended with a single write. The first proves that the allocator is in the process.
//!
//! Invariant: the path is written only while the allocator starts, once by each source of options that names one, and read only after that.

use crate::config::{Mistake, REPORT_PATH_BYTES};
use crate::stats::Stats;
use core::ffi::CStr;
use core::fmt::{self, Arguments, Display, Write};
use freestone_base::sync::{AtomicBool, AtomicU8, Ordering};
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

/// The path of the report; nothing is written unless one is set.
pub(super) struct Report {
    path: [AtomicU8; REPORT_PATH_BYTES],
    is_set: AtomicBool,
}

impl Report {
    /// A report without a path.
    pub(super) const fn new() -> Self {
        Self { path: [const { AtomicU8::new(0) }; REPORT_PATH_BYTES], is_set: AtomicBool::new(false) }
    }

    /// The path as a C string with what follows it in the buffer, if one is set.
    fn get(&self) -> Option<[u8; REPORT_PATH_BYTES]> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        let mut path = [0; REPORT_PATH_BYTES];
        for (byte, stored) in path.iter_mut().zip(&self.path) {
            *byte = stored.load(Ordering::Relaxed);
        }
        Some(path)
    }

    /// Sets the path, in place of one set before; an empty one turns the report off.
    ///
    /// # Errors
    /// The path is longer than [`REPORT_PATH_BYTES`] less one; nothing has changed then.
    pub(super) fn set(&self, path: &[u8]) -> Result<(), Mistake> {
        if path.len() >= REPORT_PATH_BYTES {
            return Err(Mistake::OutOfRange);
        }
        for (stored, &byte) in self.path.iter().zip(path.iter().chain(core::iter::repeat(&0))) {
            stored.store(byte, Ordering::Relaxed);
        }
        self.is_set.store(!path.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Appends the line that says the allocator is in the process.
    pub(super) fn append_start(&self) {
        self.append(|pid| {
            line(format_args!(r#"{{"event":"start","pid":{pid},"version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
        });
    }

    /// Appends a line with all that is counted; `stats` is called if there is a report.
    pub(super) fn append_stats(&self, event: Event, now_ms: u64, stats: impl FnOnce() -> Stats) {
        self.append(|pid| stats_line(event, pid, now_ms, &stats()));
    }

    /// Appends a line, if a path is set. A file that cannot be written is reported on standard error.
    fn append(&self, line: impl FnOnce(i32) -> FixedText<LINE_BYTES>) {
        if let Some(path) = self.get()
            && let Ok(path) = CStr::from_bytes_until_nul(&path)
            && let Err(errno) = freestone_os::append(path, line(process::id()).as_bytes())
        {
            let path = path.to_str().unwrap_or("?");
            freestone_os::report(format_args!(
                "cannot write the report to {path}: error {}; give another path",
                errno.0
            ));
        }
    }
}

fn stats_line(event: Event, pid: i32, now_ms: u64, stats: &Stats) -> FixedText<LINE_BYTES> {
    line(format_args!(
        concat!(
            r#"{{"event":"{}","pid":{},"ms":{},"allocations":{},"frees":{},"remote_frees":{},"handovers":{},"#,
            r#""live_bytes":{},"peak_live_bytes":{},"committed_bytes":{},"peak_committed_bytes":{},"purged_bytes":{},"#,
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
