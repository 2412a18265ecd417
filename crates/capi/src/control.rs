//! Options, statistics, purging for C; and the line at the process's end.
#![allow(unsafe_code)]
//!
//! # Safety
//! Strings are C strings, and structures are as large as their callers say.

use core::ffi::{CStr, c_char, c_int, c_void};
use freestone_os::{Errno, process};
use heap::{Callback, Freestone};

/// `freestone_stats_t` of `freestone.h`. Bytes unless the header says otherwise. New fields come at the end: `size` says how many the
/// caller knows.
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

/// Fills `*stats`, as much of it as `stats->size` says. 0, or -1 and `EINVAL` if that is less than the size itself.
///
/// # Safety
/// - `stats` points to `stats->size` bytes that can be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_stats(stats: *mut FreestoneStats) -> c_int {
    // SAFETY: the caller's promise.
    let size = if stats.is_null() { 0 } else { unsafe { (*stats).size } };
    if size < size_of::<usize>() {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    let now = Freestone.stats();
    let all = FreestoneStats {
        size: size.min(size_of::<FreestoneStats>()),
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
    };
    // SAFETY: both hold that many bytes.
    unsafe { stats.cast::<u8>().copy_from_nonoverlapping((&raw const all).cast(), all.size) };
    0
}

/// Gives all memory that is free back to the operating system now. The bytes given back.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_purge() -> usize {
    Freestone.purge()
}

/// Makes `callback` what is called, with `argument`, when memory is short; null: nothing.
///
/// # Safety
/// - The function may be called with the argument at any time, by any thread, until another one is set and calls under way are over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_on_pressure(callback: Option<Callback>, argument: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { Freestone.on_pressure(callback, argument) }
}

/// Sets an option by name. 0, or -1 and `EINVAL` if there is none of that name or the value does not suit it.
///
/// # Safety
/// - Both are C strings or null; null is no name, and no value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_option_set(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let set = match unsafe { (text(name), text(value)) } {
        (Some(name), Some(value)) => Freestone.set_option(name, value).is_ok(),
        _ => false,
    };
    if !set {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    0
}

/// The value of an option as a number: its unit's, or the place among its words. -1 and `EINVAL` if there is none of that name.
///
/// # Safety
/// - `name` is a C string or null; null is no name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_option_get(name: *const c_char) -> i64 {
    // SAFETY: the caller's promise.
    match unsafe { text(name) }.and_then(|name| Freestone.option(name)) {
        Some(value) => i64::try_from(value).unwrap_or(i64::MAX),
        None => {
            process::set_errno(Errno::INVAL);
            -1
        }
    }
}

/// The text of a C string, if it is one and UTF-8.
///
/// # Safety
/// - `string` is a C string or null, and lives as long as the answer is used.
unsafe fn text<'a>(string: *const c_char) -> Option<&'a str> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_str().ok()
}

/// The library's version, as a C string that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Runs when the process ends by `exit` or by returning from `main`, after the program's own `atexit` functions.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        Freestone.report_exit();
    }
    at_exit
};
