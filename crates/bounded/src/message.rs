//! The message of an error.
#![allow(unsafe_code)]
//!
//! # Safety
//! The error and the buffer are the C caller's; [`write()`] states the contract.

use crate::error::{BAD_STRUCT, FreestoneError, OK};
use core::ffi::c_char;
use core::fmt;
use freestone_base::text::FixedText;

/// Room for a message: the longest has about 140 bytes.
const TEXT_BYTES: usize = 256;

/// Writes the message of `error` into `buffer`, cut to `size - 1` bytes and ended by a zero. Returns the length of the whole message. `of_family` writes
/// what it knows, and returns `None` for codes of other families.
///
/// # Safety
/// - `error` points to a `freestone_error_t`.
/// - `buffer` points to `size` writable bytes; it may be null if `size` is 0.
pub unsafe fn write(
    error: *const FreestoneError,
    (buffer, size): (*mut c_char, usize),
    of_family: fn(FreestoneError, &mut dyn fmt::Write) -> Option<fmt::Result>,
) -> usize {
    // SAFETY: `error` points to a structure of the caller's (this function's contract), which is plain data.
    let error = unsafe { error.read() };
    let mut text = FixedText::<TEXT_BYTES>::new();
    // Writing into a fixed text does not fail: it cuts.
    let _written = match error.code {
        OK => write!(text, "no error"),
        BAD_STRUCT => write!(
            text,
            "a structure of {} bytes was passed, where its first version has {}: set its member `size`",
            error.value, error.limit
        ),
        code => of_family(error, &mut text.writer()).unwrap_or_else(|| write!(text, "no error has the code {code}")),
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

#[cfg(all(test, any(feature = "pool", feature = "tlsf")))]
pub(crate) mod tests;
