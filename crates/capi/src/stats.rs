//! Statistics, for C: the figures of the process and of explicit heaps, as numbers and as text.
#![allow(unsafe_code)]
//!
//! # Safety
//! Structures are as large as their member `size` says. Each function repeats this.

use crate::pieces::{Pieces, Writer};
use core::ffi::{c_int, c_void};
use freestone_os::{Errno, process};
use heap::{Freestone, Heap};

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

/// Copies as much of `all`, whose first member is `size`, as the caller's structure has room for. Returns 0; -1 and `EINVAL` if that is less than the
/// member itself, or `place` is null.
///
/// # Safety
/// - `place` is null or points to a structure that starts with its size in bytes, all of them writable.
/// - `T` is `repr(C)` and starts with a `usize`.
unsafe fn fill<T>(place: *mut T, all: impl FnOnce(usize) -> T) -> c_int {
    // SAFETY: `place` is not null where it is read, and its first member is there whatever its size (this function's contract).
    let size = if place.is_null() { 0 } else { unsafe { place.cast::<usize>().read() } };
    if size < size_of::<usize>() {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    let size = size.min(size_of::<T>());
    let all = all(size);
    // SAFETY: `size` bytes are in `all`, and in the caller's structure, whose size is no less.
    unsafe { place.cast::<u8>().copy_from_nonoverlapping((&raw const all).cast(), size) };
    0
}

/// Fills the first `stats->size` bytes of `*stats`. Returns 0; -1 and `EINVAL` if that is less than the member itself, or `stats` is null.
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
        }
    };
    // SAFETY: the structure has as many writable bytes as it says (this function's contract), and starts with its size.
    unsafe { fill(stats, all) }
}

/// Fills the first `stats->size` bytes of `*stats` with what `heap` has. Returns 0; -1 and `EINVAL` as [`freestone_stats`].
///
/// # Safety
/// - `heap` was returned by `freestone_heap_new` and not ended by `freestone_heap_delete`.
/// - `stats` is null or points to as many writable bytes as its member `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_stats(heap: *mut Heap, stats: *mut FreestoneHeapStats) -> c_int {
    let all = |size| {
        // SAFETY: the handle is live (this function's contract).
        let now = unsafe { &*heap }.stats();
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
    unsafe { fill(stats, all) }
}

/// `freestone_stats_format_t`: OpenMetrics.
const OPEN_METRICS: c_int = 0;
/// `freestone_stats_format_t`: JSON.
const JSON: c_int = 1;

/// Calls `writer` with the figures as text, piece by piece. Returns 0; what `writer` returned, if that is anything else; -1 and `EINVAL` for an unknown
/// format or a null `writer`, -1 and `ENOMEM` if the kernel has no memory for the snapshot.
///
/// # Safety
/// - `writer` is null or may be called with any bytes and `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_stats_write(format: c_int, writer: Option<Writer>, context: *mut c_void) -> c_int {
    let Some(writer) = writer.filter(|_| [OPEN_METRICS, JSON].contains(&format)) else {
        process::set_errno(Errno::INVAL);
        return -1;
    };
    // SAFETY: `writer` may be called with any bytes and `context` (this function's contract).
    let mut pieces = unsafe { Pieces::new(writer, context) };
    let written = Freestone.with_details(|details| match format {
        OPEN_METRICS => pieces.write_all(format_args!("{}", details.open_metrics())),
        _ => pieces.write_all(format_args!("{}\n", details.json())),
    });
    written.unwrap_or_else(|| {
        process::set_errno(Errno::NOMEM);
        -1
    })
}
