//! The text in which a peer states its version, put together when it is asked for.

use core::ffi::{CStr, c_char};
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

/// Room for the text and the zero behind it.
const ROOM: usize = 128;

/// The text. Writing it again changes nothing, so it may be asked for by several threads at once.
pub struct Text([AtomicU8; ROOM]);

/// A place in a [`Text`] from which writing goes on.
pub struct Writer<'a> {
    text: &'a Text,
    len: usize,
}

impl Text {
    /// Nothing yet.
    #[expect(clippy::new_without_default, reason = "a static needs a constant")]
    pub const fn new() -> Self {
        Self([const { AtomicU8::new(0) }; ROOM])
    }

    /// The text that `state` writes, as a C string; cut where the room ends.
    pub fn of(&self, state: fn(&mut Writer<'_>) -> fmt::Result) -> *const c_char {
        // What does not fit is left out.
        let _ = state(&mut Writer { text: self, len: 0 });
        self.0.as_ptr().cast()
    }
}

impl fmt::Write for Writer<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for byte in part.bytes() {
            // The last place stays the zero.
            if self.len == ROOM - 1 {
                return Err(fmt::Error);
            }
            self.text.0[self.len].store(byte, Ordering::Relaxed);
            self.len += 1;
        }
        Ok(())
    }
}

/// The beginning of a version, up to the first dash: what follows names the source.
///
/// # Safety
/// `text` is null or a C string constant.
pub unsafe fn release(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "of unknown version";
    }
    // SAFETY: the caller promises a C string constant.
    let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("of unknown version");
    text.split('-').next().unwrap_or(text)
}
