//! The text in which a peer states its version, written when it is requested.

use core::ffi::{CStr, c_char};
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

/// Size of the text with its terminating zero, in bytes.
const ROOM: usize = 128;

/// The text. Every writer writes the same bytes, so several threads may request it at once.
pub struct Text([AtomicU8; ROOM]);

/// Writes to a [`Text`], from `len` on.
pub struct Writer<'a> {
    text: &'a Text,
    len: usize,
}

impl Text {
    /// An empty text.
    #[expect(clippy::new_without_default, reason = "a static needs a constant")]
    pub const fn new() -> Self {
        Self([const { AtomicU8::new(0) }; ROOM])
    }

    /// The text that `state` writes, as a C string; cut if it is too long.
    pub fn of(&self, state: fn(&mut Writer<'_>) -> fmt::Result) -> *const c_char {
        // What does not fit is cut.
        let _ = state(&mut Writer { text: self, len: 0 });
        self.0.as_ptr().cast()
    }
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for byte in part.bytes() {
            // The last byte stays zero.
            if self.len == ROOM - 1 {
                return Err(fmt::Error);
            }
            self.text.0[self.len].store(byte, Ordering::Relaxed);
            self.len += 1;
        }
        Ok(())
    }
}

/// The beginning of a version, up to the first dash; what follows names the source.
///
/// # Safety
/// `text` is null or a C string constant.
pub unsafe fn release(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "of unknown version";
    }
    // SAFETY: the text is not null, so it is a C string constant, as the contract above says.
    let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("of unknown version");
    text.split('-').next().unwrap_or(text)
}
