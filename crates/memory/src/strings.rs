//! The functions of `<string.h>` that copy a string.
#![allow(unsafe_code)]
//!
//! A string that does not end in its block is read to its end before that is reported: reading does no harm, and nothing is written before the
//! report.
//!
//! # Safety
//! As the C standard says of these functions: a string is where one is asked for, and there is room for what is written. Where that is not so, and
//! one of them is in a block, it is reported.

use crate::blocks::copy;
use crate::bounds::{check_read, check_write};
use crate::routines::{self, length, position};
use core::ffi::CStr;

/// Bytes of a string, but at most `most`.
///
/// # Safety
/// - `text` is a string, or `most` bytes may be read there.
pub(crate) unsafe fn length_up_to(text: *const u8, most: usize) -> usize {
    // SAFETY: a string is there, or as many bytes (this function's contract).
    unsafe { position(text, 0, most) }
}

/// Copies a string with its end. Returns where the end is.
///
/// # Safety
/// - `from` is a string, and there is room for it at `to`.
unsafe fn copy_text(to: *mut u8, from: *const u8, function: &'static CStr) -> *mut u8 {
    // SAFETY: `from` is a string (this function's contract).
    let length = unsafe { length(from) };
    // SAFETY: the string's bytes and its end may be read, and there is room for them (this function's contract).
    unsafe { copy(to, from, length + 1, function) };
    to.wrapping_add(length)
}

/// Copies at most `room` bytes of a string, and fills the rest of the room with zeros. Returns where the first zero is, or the room's end.
///
/// # Safety
/// - `from` is a string, or `room` bytes may be read there; there is room at `to`.
unsafe fn copy_padded(to: *mut u8, from: *const u8, room: usize, function: &'static CStr) -> *mut u8 {
    // SAFETY: a string is there, or as many bytes (this function's contract).
    let length = unsafe { length_up_to(from, room) };
    check_write(to, room, function);
    check_read(from, room.min(length + 1), function);
    // SAFETY: these bytes of the string may be read, and there is room for them (this function's contract).
    unsafe { routines::copy(to, from, length) };
    let end = to.wrapping_add(length);
    // SAFETY: the rest of the room may be written (this function's contract).
    unsafe { routines::fill(end, 0, room - length) };
    end
}

/// Copies `length` bytes of a string behind another, and ends them; `read` bytes of it are read to know how many.
///
/// # Safety
/// - `to` is a string with room behind it; `read` bytes may be read at `from`, and `length` is no more.
unsafe fn append(to: *mut u8, from: *const u8, length: usize, read: usize, function: &'static CStr) {
    // SAFETY: `to` is a string (this function's contract).
    let end = to.wrapping_add(unsafe { routines::length(to) });
    // The string that is there and what is appended are one stretch.
    check_write(to, (end.addr() - to.addr()) + length + 1, function);
    check_read(from, read, function);
    // SAFETY: these bytes may be read, and there is room for them behind the string (this function's contract).
    unsafe { routines::copy(end, from, length) };
    // SAFETY: and for the end.
    unsafe { end.wrapping_add(length).write(0) };
}

/// C's function.
///
/// # Safety
/// - As for [`copy_text`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn strcpy(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy_text`.
    unsafe { copy_text(to, from, c"strcpy") };
    to
}

/// POSIX's function: as `strcpy`, and returns the end.
///
/// # Safety
/// - As for [`copy_text`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn stpcpy(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy_text`.
    unsafe { copy_text(to, from, c"stpcpy") }
}

/// The name under which glibc's headers call `stpcpy`.
///
/// # Safety
/// - As for [`copy_text`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __stpcpy(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy_text`.
    unsafe { copy_text(to, from, c"stpcpy") }
}

/// C's function.
///
/// # Safety
/// - As for [`copy_padded`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn strncpy(to: *mut u8, from: *const u8, room: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy_padded`.
    unsafe { copy_padded(to, from, room, c"strncpy") };
    to
}

/// POSIX's function: as `strncpy`, and returns where the string ends.
///
/// # Safety
/// - As for [`copy_padded`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn stpncpy(to: *mut u8, from: *const u8, room: usize) -> *mut u8 {
    // SAFETY: this function's contract is that of `copy_padded`.
    unsafe { copy_padded(to, from, room, c"stpncpy") }
}

/// C's function.
///
/// # Safety
/// - Both are strings, and there is room behind `to`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn strcat(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: `from` is a string (this function's contract).
    let length = unsafe { length(from) };
    // SAFETY: the string and its end may be read, and there is room for them (this function's contract).
    unsafe { append(to, from, length, length + 1, c"strcat") };
    to
}

/// C's function.
///
/// # Safety
/// - `to` is a string with room behind it; `from` is a string, or `most` bytes may be read there.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn strncat(to: *mut u8, from: *const u8, most: usize) -> *mut u8 {
    // SAFETY: a string is there, or as many bytes (this function's contract).
    let length = unsafe { length_up_to(from, most) };
    // SAFETY: as many bytes were read, and there is room for them (this function's contract).
    unsafe { append(to, from, length, most.min(length + 1), c"strncat") };
    to
}

#[cfg(test)]
mod tests;
