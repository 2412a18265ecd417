//! The two functions of the C library that a compiler calls by itself, for an archive that is linked without one.
#![allow(unsafe_code)]
//!
//! On targets without an operating system the compiler's own library has them. In the finished archive they are local symbols: a program's own are
//! neither replaced nor in the way.
//!
//! # Safety
//! The contracts are C's.

use core::ffi::c_int;
use freestone_base::bytes;

/// Copies `n` bytes to another place. Returns that.
///
/// # Safety
/// - The `n` bytes at `from` may be read, those at `to` written, and the two do not overlap.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy`.
    unsafe { bytes::copy(to, from, n) };
    to
}

/// Writes `n` bytes of one value. Returns their start.
///
/// # Safety
/// - The `n` bytes at `to` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memset(to: *mut u8, value: c_int, n: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `fill`. C passes the byte as an `int`, of which the lowest eight bits count.
    unsafe { bytes::fill(to, value as u8, n) };
    to
}
