//! The message of an error.
#![allow(unsafe_code)]
//!
//! # Safety
//! The error and the buffer are the C caller's; [`freestone_error_text`] states the contract.

use crate::error::FreestoneError;
use crate::{pool, tlsf};
use core::ffi::c_char;
use core::fmt::Write as _;
use freestone_base::text::FixedText;

/// Room for a message: the longest has about 140 bytes.
const TEXT_BYTES: usize = 256;

/// Writes the message of `error` into `buffer`, cut to `size - 1` bytes and ended by a zero. Returns the length of the whole message.
///
/// # Safety
/// - `error` points to a `freestone_error_t`.
/// - `buffer` points to `size` writable bytes; it may be null if `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_error_text(error: *const FreestoneError, buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: `error` points to a structure of the caller's (this function's contract), which is plain data.
    let error = unsafe { error.read() };
    let mut text = FixedText::<TEXT_BYTES>::new();
    // Writing into a fixed text does not fail: it cuts.
    let _written = if let Some(refusal) = tlsf::refusal::from_c(error) {
        write!(text, "{refusal}")
    } else if let Some(refusal) = pool::refusal::Refusal::from_c(error) {
        write!(text, "{refusal}")
    } else {
        write!(text, "no error")
    };
    let bytes = text.as_bytes();
    if let Some(room) = size.checked_sub(1) {
        let n_copied = bytes.len().min(room);
        let buffer = buffer.cast::<u8>();
        // SAFETY: the buffer has `size` bytes, of which `n_copied` are at most all but one; the text is not in it.
        unsafe { buffer.copy_from_nonoverlapping(bytes.as_ptr(), n_copied) };
        // SAFETY: `n_copied` is below `size`, so the byte is in the buffer.
        let end = unsafe { buffer.add(n_copied) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    bytes.len()
}
