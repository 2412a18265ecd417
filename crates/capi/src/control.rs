//! Options and purging, for C; and the line of statistics that the library appends to its report when the process exits.
#![allow(unsafe_code)]
//!
//! # Safety
//! Strings that C programs pass end with a zero byte. Each function repeats this.

use core::ffi::{CStr, c_char, c_int, c_void};
use freestone_os::{Errno, process};
use heap::{Callback, Freestone};

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

/// Sets an option by name. Returns 0; -1 and `EINVAL` if there is no such option or the value is not valid for it.
///
/// # Safety
/// - Both are null or C strings. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_option_set(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: `name` is null or a C string (this function's contract), and outlives this call.
    let name = unsafe { text(name) };
    // SAFETY: so is `value`.
    let value = unsafe { text(value) };
    let set = match (name, value) {
        (Some(name), Some(value)) => Freestone.set_option(name, value).is_ok(),
        _ => false,
    };
    if !set {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    0
}

/// The value of an option as a number: in its unit, or the index of its word. -1 and `EINVAL` if there is no option of that name.
///
/// # Safety
/// - `name` is null or a C string. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_option_get(name: *const c_char) -> i64 {
    // SAFETY: `name` is null or a C string (this function's contract), and outlives this call.
    match unsafe { text(name) }.and_then(|name| Freestone.option(name)) {
        Some(value) => i64::try_from(value).unwrap_or(i64::MAX),
        None => {
            process::set_errno(Errno::INVAL);
            -1
        }
    }
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
