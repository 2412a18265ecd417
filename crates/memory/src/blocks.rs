//! The functions of `<string.h>` and `<strings.h>` that copy and fill a number of bytes.
#![allow(unsafe_code)]
//!
//! # Safety
//! As the C standard says of these functions: as many bytes as are asked for may be read at the source and written at the destination. Where that
//! is not so, and one of them is in a block, it is reported. In a test binary the functions have no C names: the test needs its own.

use crate::bounds::{check_read, check_write, is_checked};
use crate::routines;
use core::ffi::{CStr, c_int};
use core::ptr;

/// Checks and copies. Returns `to`. Where nothing is to be checked this is a few instructions and a jump.
///
/// # Safety
/// - `bytes` may be read at `from` and written at `to`.
#[inline(always)]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize, function: &'static CStr) -> *mut u8 {
    if is_checked(to) || is_checked(from) {
        // SAFETY: this function's contract is that of `copy_checked`.
        return unsafe { copy_checked(to, from, bytes, function) };
    }
    // SAFETY: the bytes may be read and written (this function's contract).
    unsafe { routines::copy(to, from, bytes) }
}

/// Copies what may be in blocks.
///
/// # Safety
/// - As for [`copy`].
#[inline(never)]
unsafe fn copy_checked(to: *mut u8, from: *const u8, bytes: usize, function: &'static CStr) -> *mut u8 {
    check_write(to, bytes, function);
    check_read(from, bytes, function);
    // SAFETY: the bytes may be read and written (this function's contract).
    unsafe { routines::copy(to, from, bytes) }
}

/// Checks and fills. Returns `to`.
///
/// # Safety
/// - `bytes` may be written at `to`.
#[inline(always)]
unsafe fn fill(to: *mut u8, value: u8, bytes: usize, function: &'static CStr) -> *mut u8 {
    if is_checked(to) {
        // SAFETY: this function's contract is that of `fill_checked`.
        return unsafe { fill_checked(to, value, bytes, function) };
    }
    // SAFETY: the bytes may be written (this function's contract).
    unsafe { routines::fill(to, value, bytes) }
}

/// Fills what may be in a block.
///
/// # Safety
/// - As for [`fill`].
#[inline(never)]
unsafe fn fill_checked(to: *mut u8, value: u8, bytes: usize, function: &'static CStr) -> *mut u8 {
    check_write(to, bytes, function);
    // SAFETY: the bytes may be written (this function's contract).
    unsafe { routines::fill(to, value, bytes) }
}

/// C's function.
///
/// # Safety
/// - `bytes` may be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy`.
    unsafe { copy(to, from, bytes, c"memcpy") }
}

/// C's function.
///
/// # Safety
/// - `bytes` may be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy`.
    unsafe { copy(to, from, bytes, c"memmove") }
}

/// GNU's function: as `memcpy`, and returns the end.
///
/// # Safety
/// - `bytes` may be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn mempcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy`.
    unsafe { copy(to, from, bytes, c"mempcpy") }.wrapping_add(bytes)
}

/// The name under which glibc's headers call `mempcpy`.
///
/// # Safety
/// - `bytes` may be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __mempcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `mempcpy`.
    unsafe { mempcpy(to, from, bytes) }
}

/// BSD's function: as `memmove`, with the source first.
///
/// # Safety
/// - `bytes` may be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn bcopy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: this function's contract is that of `copy`.
    unsafe { copy(to, from, bytes, c"bcopy") };
}

/// C's function: copies up to and including the first byte that is `last`, but at most `most` bytes. Returns where that byte was written to, plus one;
/// null if there is none.
///
/// # Safety
/// - The bytes up to that one, or `most` bytes, may be read at `from` and written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memccpy(to: *mut u8, from: *const u8, last: c_int, most: usize) -> *mut u8 {
    // SAFETY: the bytes may be read (this function's contract). C says that the value is converted to a byte.
    let before = unsafe { routines::position(from, last as u8, most) };
    let bytes = most.min(before.saturating_add(1));
    // SAFETY: as many bytes were read, and may be written (this function's contract).
    unsafe { copy(to, from, bytes, c"memccpy") };
    if before < most { to.wrapping_add(bytes) } else { ptr::null_mut() }
}

/// C's function.
///
/// # Safety
/// - `bytes` may be written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memset(to: *mut u8, value: c_int, bytes: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `fill`. C says that the value is converted to a byte.
    unsafe { fill(to, value as u8, bytes, c"memset") }
}

/// BSD's function: sets bytes to zero.
///
/// # Safety
/// - `bytes` may be written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn bzero(to: *mut u8, bytes: usize) {
    // SAFETY: this function's contract is that of `fill`.
    unsafe { fill(to, 0, bytes, c"bzero") };
}

/// As `bzero`; a compiler never leaves the call out.
///
/// # Safety
/// - `bytes` may be written at `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn explicit_bzero(to: *mut u8, bytes: usize) {
    // SAFETY: this function's contract is that of `fill`.
    unsafe { fill(to, 0, bytes, c"explicit_bzero") };
}

#[cfg(test)]
mod tests;
