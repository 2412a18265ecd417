//! The heap profile, for C.
#![allow(unsafe_code)]
//!
//! # Safety
//! Strings that C programs pass end with a zero byte; functions that they pass are called as they are declared. Each function repeats this.

use core::ffi::{CStr, c_char, c_int, c_void};
use freestone_os::{Errno, process};
use heap::profile::{self, Snapshot};

/// What a dump is passed on to, piece by piece: 0 to go on, an error number to end.
pub type Sink = unsafe extern "C" fn(piece: *const c_void, bytes: usize, argument: *mut c_void) -> c_int;

/// Starts to sample allocations. Returns 0; -1 and `ENOMEM` without memory for it, or in a sandbox.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_profile_start() -> c_int {
    if profile::start() { 0 } else { fail(Errno::NOMEM) }
}

/// Samples no more.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_profile_stop() {
    profile::stop();
}

/// Writes the profile to a file; null: the one that the options name. Returns 0; -1 and the error number of the file.
///
/// # Safety
/// - `path` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_profile_dump(path: *const c_char, of: c_int) -> c_int {
    let Some(of) = snapshot(of) else { return fail(Errno::INVAL) };
    let written = if path.is_null() {
        profile::write_file(of)
    } else {
        // SAFETY: `path` is a C string (this function's contract).
        profile::write_to(unsafe { CStr::from_ptr(path) }, of)
    };
    done(written)
}

/// Writes the profile to an open descriptor. Returns 0; -1 and the error number of the file.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_profile_dump_fd(descriptor: c_int, of: c_int) -> c_int {
    let Some(of) = snapshot(of) else { return fail(Errno::INVAL) };
    done(profile::write(of, &mut |piece| freestone_os::write_descriptor(descriptor, piece)))
}

/// Passes the profile on to `sink`, piece by piece, with `argument`. Returns 0; -1 and the error number that `sink` returned.
///
/// # Safety
/// - `sink` may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_profile_dump_to(sink: Option<Sink>, argument: *mut c_void, of: c_int) -> c_int {
    let (Some(sink), Some(of)) = (sink, snapshot(of)) else { return fail(Errno::INVAL) };
    let written = profile::write(of, &mut |piece: &[u8]| {
        // SAFETY: the function may be called with the argument (this function's contract), and the piece has so many bytes.
        match unsafe { sink(piece.as_ptr().cast(), piece.len(), argument) } {
            0 => Ok(()),
            error => Err(Errno(error)),
        }
    });
    done(written)
}

/// `freestone_profile_of_t`.
fn snapshot(of: c_int) -> Option<Snapshot> {
    match of {
        0 => Some(Snapshot::Live),
        1 => Some(Snapshot::Peak),
        _ => None,
    }
}

fn done(written: Result<(), Errno>) -> c_int {
    written.map_or_else(fail, |()| 0)
}

fn fail(errno: Errno) -> c_int {
    process::set_errno(errno);
    -1
}
