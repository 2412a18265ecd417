//! What compilers call in fortified programs where they know how much room there is: as the functions without `_chk`, but an access beyond the room
//! ends the process as the C library does it.
#![allow(unsafe_code)]
//!
//! # Safety
//! As for the functions without `_chk`.

use crate::blocks;
use crate::routines::length;
use crate::strings::{self, length_up_to};
use core::ffi::c_int;

unsafe extern "C" {
    /// The C library's function that says what happened, and aborts.
    safe fn __chk_fail() -> !;
}

/// Ends the process unless `bytes` fit into `room`.
#[inline(always)]
fn ensure(bytes: usize, room: usize) {
    if bytes > room {
        __chk_fail();
    }
}

/// Defines functions: name and parameters, the function without `_chk`, and how many bytes it writes.
macro_rules! fortified {
    ($($name:ident($to:ident, $($argument:ident: $type:ty),*) as $plain:path, $bytes:expr;)*) => {$(
        /// As the function without `_chk`, with `room` bytes at `to`.
        ///
        /// # Safety
        /// - As for the function without `_chk`.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($to: *mut u8, $($argument: $type,)* room: usize) -> *mut u8 {
            ensure($bytes, room);
            // SAFETY: this function's contract is that of the function without `_chk`.
            unsafe { $plain($to, $($argument),*) }
        }
    )*};
}

fortified! {
    __memcpy_chk(to, from: *const u8, bytes: usize) as blocks::memcpy, bytes;
    __memmove_chk(to, from: *const u8, bytes: usize) as blocks::memmove, bytes;
    __mempcpy_chk(to, from: *const u8, bytes: usize) as blocks::mempcpy, bytes;
    __memset_chk(to, value: c_int, bytes: usize) as blocks::memset, bytes;
    // SAFETY: `from` is a string (the contract of `strcpy`).
    __strcpy_chk(to, from: *const u8) as strings::strcpy, unsafe { length(from) } + 1;
    // SAFETY: `from` is a string (the contract of `stpcpy`).
    __stpcpy_chk(to, from: *const u8) as strings::stpcpy, unsafe { length(from) } + 1;
    __strncpy_chk(to, from: *const u8, bytes: usize) as strings::strncpy, bytes;
    __stpncpy_chk(to, from: *const u8, bytes: usize) as strings::stpncpy, bytes;
    // SAFETY: both are strings (the contract of `strcat`).
    __strcat_chk(to, from: *const u8) as strings::strcat, unsafe { joined_length(to, from, usize::MAX) } + 1;
    // SAFETY: `to` is a string, and `from` one or as many bytes (the contract of `strncat`).
    __strncat_chk(to, from: *const u8, most: usize) as strings::strncat, unsafe { joined_length(to, from, most) } + 1;
}

/// Bytes of a string and of at most `most` bytes of another behind it, without an end.
///
/// # Safety
/// - `text` is a string; `more` is one, or `most` bytes may be read there.
unsafe fn joined_length(text: *const u8, more: *const u8, most: usize) -> usize {
    // SAFETY: `text` is a string (this function's contract).
    let length = unsafe { length(text) };
    // SAFETY: a string is there, or as many bytes (this function's contract).
    length + unsafe { length_up_to(more, most) }
}

/// As `explicit_bzero`, with `room` bytes at `to`.
///
/// # Safety
/// - As for `explicit_bzero`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __explicit_bzero_chk(to: *mut u8, bytes: usize, room: usize) {
    ensure(bytes, room);
    // SAFETY: this function's contract is that of `explicit_bzero`.
    unsafe { blocks::explicit_bzero(to, bytes) }
}
