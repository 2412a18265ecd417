//! Why a function of the process or of an explicit heap was refused.
#![allow(unsafe_code)]
//!
//! Functions that return a pointer set `errno` as C's `malloc` does, because their callers are used to it; functions that return a code leave it.
//!
//! # Safety
//! [`refused`] writes through a pointer that C programs pass, and states the contract.

use core::ffi::c_int;
use core::fmt;
use core::ptr;
use freestone_bounded::error::FreestoneError;
use freestone_os::{Errno, process};

/// The refusals whose codes are from 201 on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// There are no `bytes`: memory runs out, or the heap's limit is reached.
    NoMemory { bytes: usize },
    /// The alignment is not a power of two.
    BadAlignment { align: usize },
    /// The address is in no block of the heap; or, of no heap, where none is named.
    Foreign { address: usize },
    /// The heap has more than that limit, or the limit is less than a page.
    BadLimit { bytes: usize, has: usize },
    /// The option `harden` has no such level.
    NoSuchLevel,
    /// There is no such option.
    NoSuchOption,
    /// The option does not take that value, or not at this time.
    BadValue,
    /// There is no such format of statistics, or no function to write them.
    BadFormat,
    /// There is no memory for the tables of the heap profile, or the process is in a sandbox.
    NoProfile,
    /// A profile has no such part, or there is no function to write it.
    NoSuchSnapshot,
    /// The kernel refused to write, with that error number.
    NotWritten { errno: i32 },
}

impl Failure {
    /// The failure as C programs read it.
    pub(crate) const fn to_c(self) -> FreestoneError {
        const fn of(code: c_int, address: usize, value: usize, limit: usize) -> FreestoneError {
            FreestoneError { code, address, block: 0, value, limit }
        }
        match self {
            Self::NoMemory { bytes } => of(201, 0, bytes, 0),
            Self::BadAlignment { align } => of(202, 0, align, 0),
            Self::Foreign { address } => of(203, address, 0, 0),
            Self::BadLimit { bytes, has } => of(204, 0, bytes, has),
            Self::NoSuchLevel => of(205, 0, 0, 0),
            Self::NoSuchOption => of(206, 0, 0, 0),
            Self::BadValue => of(207, 0, 0, 0),
            Self::BadFormat => of(208, 0, 0, 0),
            Self::NoProfile => of(209, 0, 0, 0),
            Self::NoSuchSnapshot => of(210, 0, 0, 0),
            Self::NotWritten { errno } => of(211, 0, errno.unsigned_abs() as usize, 0),
        }
    }

    /// Its code.
    pub(crate) const fn code(self) -> c_int {
        self.to_c().code
    }

    /// Writes the message of an error; `None` if its code is not one of these.
    pub(crate) fn describe(error: FreestoneError, out: &mut dyn fmt::Write) -> Option<fmt::Result> {
        let FreestoneError { code, address, value, limit, .. } = error;
        Some(match code {
            201 => write!(out, "there is no memory for {value} bytes, or the heap's limit is reached"),
            202 => write!(out, "the alignment {value} is not a power of two"),
            203 => write!(out, "{address:#x} is no block of this heap"),
            204 => write!(
                out,
                "a limit of {value} bytes is less than a page of 64 KiB, or than the {limit} bytes that the heap has"
            ),
            205 => out.write_str("the option harden has no such level: it has off, default, checks and full"),
            206 => out.write_str("there is no such option: `freestone options` lists them"),
            207 => out.write_str("the option does not take that value, or cannot be set now"),
            208 => out.write_str("there is no such format of statistics, or no function to write them"),
            209 => out.write_str("there is no memory for the heap profile, or the option sandbox forbids it"),
            210 => out.write_str(
                "a heap profile shows what is live (0) or was at the peak (1), or there is no function to write it",
            ),
            211 => write!(out, "writing failed: the system's error number is {value}"),
            _ => return None,
        })
    }
}

/// Stores an error in `*error`, sets `errno` and returns null.
///
/// # Safety
/// - `error` is null or points to a writable `freestone_error_t`.
pub(crate) unsafe fn refused<T>(error: *mut FreestoneError, why: FreestoneError) -> *mut T {
    // SAFETY: `error` is null or writable (this function's contract).
    unsafe { why.store(error) };
    process::set_errno(errno(why.code));
    ptr::null_mut()
}

/// `ENOMEM` where memory was lacking, else `EINVAL`.
pub(crate) fn errno(code: c_int) -> Errno {
    // Pools: a shape that is larger than the address space, and no memory for one.
    match code {
        104 | 114 | 201 => Errno::NOMEM,
        _ => Errno::INVAL,
    }
}
