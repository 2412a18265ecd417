//! Statistics, for C: the figures of the process and of explicit heaps, as numbers and as text.
#![allow(unsafe_code)]
//!
//! # Safety
//! Structures are as large as their member `size` says. Each function repeats this.

use crate::failure::Failure;
use crate::heap::Handle;
use crate::pieces::{self, Writer};
use core::ffi::{c_int, c_void};
use core::fmt;
use freestone_bounded::sized::{self, SizedStruct};
use heap::Freestone;

/// `freestone_stats_t` of `freestone.h`. Bytes unless the header says otherwise. New fields come at the end: `size` is the number of bytes
/// that the caller's version has.
///
/// Wide because: it is one field for each figure that a program can read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FreestoneStats {
    size: usize,
    live: u64,
    cached: u64,
    fragmented: u64,
    dirty: u64,
    metadata: u64,
    committed: u64,
    peak_committed: u64,
    peak_live: u64,
    purged: u64,
    n_allocations: u64,
    n_frees: u64,
    n_remote_frees: u64,
    n_handovers: u64,
    n_threads: u64,
    fresh: u64,
    dirty_by_age: [u64; 4],
    density: u64,
    resident: u64,
}

/// `freestone_heap_stats_t` of `freestone.h`, in the same way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FreestoneHeapStats {
    size: usize,
    live: u64,
    large: u64,
    cached: u64,
    spans: u64,
    limit: u64,
    number: u64,
    n_allocations: u64,
}

// SAFETY: it is `repr(C)`, starts with a `usize`, and consists of integers.
unsafe impl SizedStruct for FreestoneStats {
    const LEAST: usize = size_of::<usize>();
}

// SAFETY: as above.
unsafe impl SizedStruct for FreestoneHeapStats {
    const LEAST: usize = size_of::<usize>();
}

/// Fills the first `stats->size` bytes of `*stats`. Returns a code.
///
/// # Safety
/// - `stats` is null or points to as many writable bytes as its member `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_stats(stats: *mut FreestoneStats) -> c_int {
    let all = |size| {
        let now = Freestone.stats();
        FreestoneStats {
            size,
            live: now.live,
            cached: now.cached,
            fragmented: now.fragmented,
            dirty: now.dirty,
            metadata: now.metadata,
            committed: now.committed,
            peak_committed: now.peak_committed,
            peak_live: now.peak_live,
            purged: now.purged,
            n_allocations: now.n_allocations,
            n_frees: now.n_frees,
            n_remote_frees: now.n_remote_frees,
            n_handovers: now.n_handovers,
            n_threads: u64::from(now.n_threads),
            fresh: now.fresh,
            dirty_by_age: now.dirty_by_age,
            density: now.density(),
            resident: now.resident(),
        }
    };
    // SAFETY: the structure has as many writable bytes as it says (this function's contract), and starts with its size.
    unsafe { sized::fill(stats, all) }
}

/// Fills the first `stats->size` bytes of `*stats` with what `heap` has. Returns a code.
///
/// # Safety
/// - `heap` was returned by `freestone_heap_new` or `freestone_heap_new_with` and not ended by `freestone_heap_delete`.
/// - `stats` is null or points to as many writable bytes as its member `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_stats(heap: *const Handle, stats: *mut FreestoneHeapStats) -> c_int {
    let all = |size| {
        // SAFETY: the handle is live (this function's contract).
        let now = unsafe { &*heap }.heap().stats();
        FreestoneHeapStats {
            size,
            live: now.live,
            large: now.large,
            cached: now.cached,
            spans: now.spans,
            limit: now.limit,
            number: u64::from(now.number),
            n_allocations: now.n_allocations,
        }
    };
    // SAFETY: the structure has as many writable bytes as it says (this function's contract), and starts with its size.
    unsafe { sized::fill(stats, all) }
}

/// `freestone_stats_format_t`: OpenMetrics.
const OPEN_METRICS: c_int = 0;
/// `freestone_stats_format_t`: JSON.
const JSON: c_int = 1;

/// Calls `writer` with the figures as text, piece by piece. Returns a code; what `writer` returned, if that is anything but 0.
///
/// # Safety
/// - `writer` is null or may be called with any bytes and `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_stats_write(format: c_int, writer: Option<Writer>, context: *mut c_void) -> c_int {
    let Some(writer) = writer.filter(|_| [OPEN_METRICS, JSON].contains(&format)) else {
        return Failure::BadFormat.code();
    };
    let write = |text: fmt::Arguments<'_>| {
        // SAFETY: `writer` may be called with any bytes and `context` (this function's contract).
        unsafe { pieces::write_all(writer, context, text) }
    };
    let written = Freestone.with_details(|details| match format {
        OPEN_METRICS => write(format_args!("{}", details.open_metrics())),
        _ => write(format_args!("{}\n", details.json())),
    });
    written.unwrap_or(Failure::NoMemory { bytes: 0 }.code())
}
