//! Text on its way to a C program, piece by piece.
#![allow(unsafe_code)]
//!
//! # Safety
//! One block calls the C program's function; [`write_all`] states its contract.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::{self, Write};
use freestone_base::text::Pieces;

/// A function of a C program that gets a text piece by piece: the bytes, how many, and the program's argument. Anything but 0 ends the text.
pub type Writer = unsafe extern "C" fn(*const c_char, usize, *mut c_void) -> c_int;

/// Bytes that are gathered before they are written.
const PIECE_BYTES: usize = 1024;

/// Writes a whole text. Returns 0, or what the writer returned when it refused a piece: then it is not called again.
///
/// # Safety
/// - `writer` may be called with any bytes and `context`.
pub(crate) unsafe fn write_all(writer: Writer, context: *mut c_void, text: fmt::Arguments<'_>) -> c_int {
    let mut result = 0;
    let mut call = |piece: &[u8]| {
        // SAFETY: the writer may be called with any bytes and this argument (this function's contract).
        result = unsafe { writer(piece.as_ptr().cast(), piece.len(), context) };
        if result == 0 { Ok(()) } else { Err(fmt::Error) }
    };
    let mut room = [0; PIECE_BYTES];
    let mut pieces = Pieces::new(&mut room, &mut call);
    // Only a writer's refusal makes writing fail, and then its result is kept.
    let _ = pieces.write_fmt(text).and_then(|()| pieces.flush());
    result
}
