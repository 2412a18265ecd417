//! Options and purging, for C; and the line of statistics that the library appends to its report when the process exits.
#![allow(unsafe_code)]
//!
//! # Safety
//! Strings that C programs pass end with a zero byte. Each function repeats this.

use crate::failure::Failure;
use core::alloc::Layout;
use core::ffi::{CStr, c_char, c_int, c_void};
use freestone_base::align;
use freestone_base::units::PAGE_BYTES;
use freestone_bounded::error::OK;
use heap::{Callback, Freestone, Heap, door};

/// Gives all free memory back to the operating system now. Returns the bytes given back.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_purge() -> usize {
    Freestone.purge()
}

/// Registers `callback` to be called, with `argument`, when memory is short; null unregisters.
///
/// # Safety
/// - `callback` may be called with `argument` at any time, by any thread, until another one is registered and calls under way have returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_on_pressure(callback: Option<Callback>, argument: *mut c_void) {
    // SAFETY: this function's contract is that of `on_pressure`.
    unsafe { Freestone.on_pressure(callback, argument) }
}

/// Sets an option by name. Returns a code.
///
/// # Safety
/// - Both are null or C strings. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_option_set(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: `name` is null or a C string (this function's contract), and outlives this call.
    let Some(name) = (unsafe { text(name) }).filter(|name| Freestone.option(name).is_some()) else {
        return Failure::NoSuchOption.code();
    };
    // SAFETY: so is `value`.
    match unsafe { text(value) }.map(|value| Freestone.set_option(name, value)) {
        Some(Ok(())) => OK,
        _ => Failure::BadValue.code(),
    }
}

/// Stores the value of an option in `*value`: in its unit, or the index of its word. Returns a code.
///
/// # Safety
/// - `name` is null or a C string. Null is refused.
/// - `value` points to a writable number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_option_get(name: *const c_char, value: *mut u64) -> c_int {
    // SAFETY: `name` is null or a C string (this function's contract), and outlives this call.
    match unsafe { text(name) }.and_then(|name| Freestone.option(name)) {
        Some(now) => {
            // SAFETY: `value` points to a writable number (this function's contract).
            unsafe { value.write(now as u64) };
            OK
        }
        None => Failure::NoSuchOption.code(),
    }
}

/// Bytes that `malloc(size)` rounds up to, without a guard or a trailer.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_good_size(size: usize) -> usize {
    if size < door::SMALL_BOUND {
        return Layout::from_size_align(size, 1).map_or(size, Heap::block_bytes);
    }
    // A large block is whole pages.
    align::checked_up(size, PAGE_BYTES).unwrap_or(size)
}

/// The text of a C string; `None` if it is null or not UTF-8.
///
/// # Safety
/// - `string` is null or a C string that stays valid as long as the returned text is used.
pub(crate) unsafe fn text<'a>(string: *const c_char) -> Option<&'a str> {
    if string.is_null() {
        return None;
    }
    // SAFETY: `string` is not null, so it is a C string (this function's contract).
    unsafe { CStr::from_ptr(string) }.to_str().ok()
}

/// The library's version, as a C string that is never freed.
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
