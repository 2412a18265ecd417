//! The message of any error.
#![allow(unsafe_code)]
//!
//! # Safety
//! The error and the buffer are the C caller's; [`freestone_error_text`] states the contract.

use crate::failure::Failure;
use core::ffi::c_char;
use freestone_bounded::error::FreestoneError;
use freestone_bounded::{message, pool, tlsf};

/// Writes the message of `error` into `buffer`, cut to `size - 1` bytes and ended by a zero. Returns the length of the whole message.
///
/// # Safety
/// - `error` points to a `freestone_error_t`.
/// - `buffer` points to `size` writable bytes; it may be null if `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_error_text(error: *const FreestoneError, buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: this function's contract is that of `message::write`.
    unsafe {
        message::write(error, (buffer, size), |error, out| {
            tlsf::refusal::describe(error, out)
                .or_else(|| pool::refusal::describe(error, out))
                .or_else(|| Failure::describe(error, out))
        })
    }
}
