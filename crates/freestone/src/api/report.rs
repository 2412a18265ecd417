//! The lines that `freestone run` reads: one when the allocator starts, one when the process ends, and more in between if asked for.
#![allow(unsafe_code)]
//!
//! Each is one JSON object, appended with a single write. The first proves that the allocator is in the process.
//!
//! # Safety
//! The path is written once, while the allocator starts, before anything reads it.

use crate::api::{global, snapshot};
use crate::config::{Mistake, REPORT_PATH_BYTES};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt::{Arguments, Write};
use freestone_base::sync::{AtomicBool, Ordering};
use freestone_base::text::FixedText;
use freestone_os::{Os, process};

/// Longest line in bytes.
const LINE_BYTES: usize = 1024;

/// Where the lines go; nowhere unless set.
pub struct ReportPath {
    bytes: UnsafeCell<[u8; REPORT_PATH_BYTES]>,
    is_set: AtomicBool,
}

// SAFETY: see the module header.
unsafe impl Sync for ReportPath {}

impl ReportPath {
    /// Nowhere.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self { bytes: UnsafeCell::new([0; REPORT_PATH_BYTES]), is_set: AtomicBool::new(false) }
    }

    fn get(&self) -> Option<&CStr> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: written before `is_set` became true, never after.
        CStr::from_bytes_until_nul(unsafe { &*self.bytes.get() }).ok()
    }

    /// Sets the path; the last one set while the allocator starts wins.
    fn set(&self, path: &[u8]) -> Result<(), Mistake> {
        if path.len() >= REPORT_PATH_BYTES {
            return Err(Mistake::OutOfRange);
        }
        // SAFETY: options that name a path are applied by the one thread that starts the allocator, before anything reads it.
        let bytes = unsafe { &mut *self.bytes.get() };
        bytes.fill(0);
        for (slot, &byte) in bytes.iter_mut().zip(path) {
            *slot = byte;
        }
        self.is_set.store(!path.is_empty(), Ordering::Release);
        Ok(())
    }
}

/// Sets where the lines go.
pub(super) fn set_path(path: &[u8]) -> Result<(), Mistake> {
    global::report_path().set(path)
}

/// Says that the allocator is in the process.
pub(super) fn at_start() {
    append(|pid| {
        format_args_to(format_args!(r#"{{"event":"start","pid":{pid},"version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
    });
}

/// Says what the allocator did, for the process's end.
pub fn at_exit() {
    say("exit");
}

/// Says what the allocator holds now.
pub(super) fn sample() {
    say("sample");
}

/// Appends all that is counted, as an event.
fn say(event: &str) {
    append(|pid| {
        let stats = snapshot::snapshot();
        format_args_to(format_args!(
            concat!(
                r#"{{"event":"{}","pid":{},"ms":{},"allocations":{},"frees":{},"remote_frees":{},"handovers":{},"#,
                r#""live_bytes":{},"peak_live_bytes":{},"committed_bytes":{},"peak_committed_bytes":{},"purged_bytes":{},"#,
                r#""fresh_bytes":{},"cached_bytes":{},"fragmented_bytes":{},"dirty_bytes":{},"metadata_bytes":{},"threads":{}}}"#
            ),
            event,
            pid,
            global::shared().os().now_ms(),
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
    });
}

fn format_args_to(line: Arguments<'_>) -> FixedText<LINE_BYTES> {
    let mut text = FixedText::new();
    // Writing into `FixedText` cannot fail.
    let _ = writeln!(text, "{line}");
    text
}

/// Appends a line, if anybody asked for it. A file that cannot be written is reported.
fn append(line: impl FnOnce(i32) -> FixedText<LINE_BYTES>) {
    if let Some(path) = global::report_path().get()
        && let Err(errno) = freestone_os::append(path, line(process::id()).as_bytes())
    {
        let path = path.to_str().unwrap_or("?");
        freestone_os::report(format_args!("cannot write the report to {path}: error {}; give another path", errno.0));
    }
}
