//! Text on its way to a C program, piece by piece.
#![allow(unsafe_code)]
//!
//! # Safety
//! One block calls the C program's function; [`Pieces::new`] states its contract.

use core::ffi::{c_char, c_int, c_void};
use core::fmt::{self, Write};
use freestone_base::text::write_character;

/// A function of a C program that gets a text piece by piece: the bytes, how many, and the program's argument. Anything but 0 ends the text.
pub type Writer = unsafe extern "C" fn(*const c_char, usize, *mut c_void) -> c_int;

/// Bytes that are gathered before they are written.
const PIECE_BYTES: usize = 1024;

/// See the module header. A writer that refuses a piece is not called again.
pub(crate) struct Pieces {
    writer: Writer,
    context: *mut c_void,
    bytes: [u8; PIECE_BYTES],
    len: usize,
    /// What the writer returned last.
    result: c_int,
}

impl Pieces {
    /// No text.
    ///
    /// # Safety
    /// - `writer` may be called with any bytes and `context` as long as the value exists.
    pub(crate) unsafe fn new(writer: Writer, context: *mut c_void) -> Self {
        Self { writer, context, bytes: [0; PIECE_BYTES], len: 0, result: 0 }
    }

    /// Writes a whole text. Returns 0, or what the writer returned when it refused a piece.
    pub(crate) fn write_all(&mut self, text: fmt::Arguments<'_>) -> c_int {
        // Only a writer's refusal makes writing fail, and then its result is kept.
        let _ = self.write_fmt(text).and_then(|()| self.flush());
        self.result
    }

    /// Writes what was gathered.
    fn flush(&mut self) -> fmt::Result {
        if self.len > 0 {
            // SAFETY: the writer may be called with any bytes and this argument (the contract of `new`).
            self.result = unsafe { (self.writer)(self.bytes.as_ptr().cast(), self.len, self.context) };
            self.len = 0;
        }
        if self.result == 0 { Ok(()) } else { Err(fmt::Error) }
    }
}

impl Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.len == PIECE_BYTES {
                self.flush()?;
            }
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
        Ok(())
    }

    fn write_char(&mut self, character: char) -> fmt::Result {
        write_character(self, character)
    }
}
