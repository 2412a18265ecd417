//! The heap profile, for C.
#![allow(unsafe_code)]
//!
//! # Safety
//! Strings that C programs pass end with a zero byte; functions that they pass are called as they are declared. Each function repeats this.

use crate::failure::Failure;
use core::ffi::{CStr, c_char, c_int, c_void};
use freestone_bounded::error::{FreestoneError, OK};
use freestone_os::Errno;
use heap::profile::{self, Snapshot};

/// What a dump is passed on to, piece by piece: 0 to go on, any other number to end.
pub type Sink = unsafe extern "C" fn(piece: *const c_void, bytes: usize, argument: *mut c_void) -> c_int;

/// Starts to sample allocations. Returns a code.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_profile_start() -> c_int {
    if profile::start() { OK } else { Failure::NoProfile.code() }
}

/// Samples no more.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_profile_stop() {
    profile::stop();
}

/// Writes the profile to a file; null: the one that the options name. Returns a code.
///
/// # Safety
/// - `path` is null or a C string.
/// - `error` is null or points to a writable `freestone_error_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_profile_dump(path: *const c_char, of: c_int, error: *mut FreestoneError) -> c_int {
    let dumped = snapshot(of).and_then(|of| {
        not_written(if path.is_null() {
            profile::write_file(of)
        } else {
            // SAFETY: `path` is a C string (this function's contract).
            profile::write_to(unsafe { CStr::from_ptr(path) }, of)
        })
    });
    // SAFETY: `error` is null or writable (this function's contract).
    unsafe { answer(dumped, error) }
}

/// Writes the profile to an open descriptor. Returns a code.
///
/// # Safety
/// - `error` is null or points to a writable `freestone_error_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_profile_dump_fd(descriptor: c_int, of: c_int, error: *mut FreestoneError) -> c_int {
    let dumped = snapshot(of)
        .and_then(|of| not_written(profile::write(of, &mut |piece| freestone_os::write_descriptor(descriptor, piece))));
    // SAFETY: `error` is null or writable (this function's contract).
    unsafe { answer(dumped, error) }
}

/// Passes the profile on to `sink`, piece by piece, with `argument`. Returns a code; what `sink` returned, if that is anything but 0.
///
/// # Safety
/// - `sink` is null or may be called with any bytes and `argument`.
/// - `error` is null or points to a writable `freestone_error_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_profile_dump_to(
    sink: Option<Sink>,
    argument: *mut c_void,
    of: c_int,
    error: *mut FreestoneError,
) -> c_int {
    let mut result = 0;
    let dumped = sink.ok_or(Failure::NoSuchSnapshot).and_then(|sink| {
        let of = snapshot(of)?;
        let written = profile::write(of, &mut |piece: &[u8]| {
            // SAFETY: the function may be called with any bytes and the argument (this function's contract).
            result = unsafe { sink(piece.as_ptr().cast(), piece.len(), argument) };
            if result == 0 { Ok(()) } else { Err(Errno(result)) }
        });
        if result == 0 { not_written(written) } else { Ok(()) }
    });
    // SAFETY: `error` is null or writable (this function's contract).
    let code = unsafe { answer(dumped, error) };
    if result == 0 { code } else { result }
}

/// `freestone_profile_of_t`.
fn snapshot(of: c_int) -> Result<Snapshot, Failure> {
    match of {
        0 => Ok(Snapshot::Live),
        1 => Ok(Snapshot::Peak),
        _ => Err(Failure::NoSuchSnapshot),
    }
}

fn not_written(written: Result<(), Errno>) -> Result<(), Failure> {
    written.map_err(|Errno(errno)| Failure::NotWritten { errno })
}

/// The code of a dump; a failure is stored in `*error`.
///
/// # Safety
/// - `error` is null or points to a writable `freestone_error_t`.
unsafe fn answer(dumped: Result<(), Failure>, error: *mut FreestoneError) -> c_int {
    match dumped {
        Ok(()) => OK,
        // SAFETY: `error` is null or writable (this function's contract).
        Err(failure) => unsafe { failure.to_c().store(error) },
    }
}
