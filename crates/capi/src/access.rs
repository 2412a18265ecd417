//! What the library of checked memory functions asks, for C.
#![allow(unsafe_code)]
//!
//! # Safety
//! Pointers for results point to writable places; names are C strings that are never changed. Each function repeats this.

use core::ffi::{CStr, c_char, c_int, c_void};
use heap::door::{self, Access, CheckedRange};

/// Which addresses are worth a check: 1 and a stretch of memory, 0 if that is not known yet, -1 if none is, for good.
///
/// # Safety
/// - `start` and `bytes` point to writable places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_checked_range(start: *mut *const c_void, bytes: *mut usize) -> c_int {
    match door::checked_range() {
        CheckedRange::Unknown => 0,
        CheckedRange::Nothing => -1,
        CheckedRange::Blocks(first, length) => {
            // SAFETY: `start` points to a writable place (this function's contract).
            unsafe { start.write(first.cast()) };
            // SAFETY: so does `bytes`.
            unsafe { bytes.write(length) };
            1
        }
    }
}

/// Reports an access that begins in a block and does not end in it, or that begins in a freed one.
///
/// # Safety
/// - `function` is a C string that is never changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_check_access(
    address: *const c_void,
    bytes: usize,
    writes: c_int,
    function: *const c_char,
) {
    door::check_access(address.addr(), bytes, || {
        // SAFETY: `function` is a C string that is never changed (this function's contract).
        let name: &'static CStr = unsafe { CStr::from_ptr(function) };
        Access { function: name.to_str().unwrap_or("a function"), is_write: writes != 0 }
    });
}
