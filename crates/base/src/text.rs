//! Text without a heap: a fixed buffer to format a message into.
//!
//! Invariants: `bytes[..len]` is what was written; text that does not fit is cut. Writing never fails: messages about failures are made here.

use core::fmt;

/// Up to `N` bytes of text.
///
/// ```
/// use core::fmt::Write;
/// use freestone_base::text::FixedText;
///
/// let mut text = FixedText::<8>::new();
/// let _ = write!(text, "block {}", 12_345);
/// assert_eq!(text.as_bytes(), b"block 12", "the rest is cut");
/// ```
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> FixedText<N> {
    /// No text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// The text as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// Appends bytes that need not be text, such as those of a path.
    ///
    /// ```
    /// use freestone_base::text::FixedText;
    ///
    /// let mut text = FixedText::<8>::new();
    /// text.push(b"/tmp/\xff");
    /// assert_eq!(text.as_bytes(), b"/tmp/\xff");
    /// ```
    pub fn push(&mut self, bytes: &[u8]) {
        append(&mut self.bytes, &mut self.len, bytes);
    }

    /// Ends the text with a newline; without room for it, in the place of the last byte.
    ///
    /// ```
    /// use core::fmt::Write;
    /// use freestone_base::text::FixedText;
    ///
    /// let mut text = FixedText::<8>::new();
    /// let _ = write!(text, "block {}", 12_345);
    /// text.end_line();
    /// assert_eq!(text.as_bytes(), b"block 1\n");
    /// ```
    pub fn end_line(&mut self) {
        self.len = self.len.min(N.saturating_sub(1));
        self.push(b"\n");
    }
}

impl<const N: usize> Default for FixedText<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Write for FixedText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }

    fn write_char(&mut self, character: char) -> fmt::Result {
        write_character(self, character)
    }
}

/// Appends as much of `text` as fits to the `len` bytes of text that are in `bytes`. One function for all lengths.
#[inline(never)]
fn append(bytes: &mut [u8], len: &mut usize, text: &[u8]) {
    for (slot, &byte) in bytes.iter_mut().skip(*len).zip(text) {
        *slot = byte;
        *len += 1;
    }
}

/// Writes a character. One function for all that is written to, which is what [`fmt::Write`] would have for each.
///
/// # Errors
/// The character cannot be written.
///
/// ```
/// use freestone_base::text::{FixedText, write_character};
///
/// let mut text = FixedText::<8>::new();
/// assert!(write_character(&mut text, 'ö').is_ok());
/// assert_eq!(text.as_bytes(), "ö".as_bytes());
/// ```
#[inline(never)]
pub fn write_character(text: &mut dyn fmt::Write, character: char) -> fmt::Result {
    text.write_str(character.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests;
