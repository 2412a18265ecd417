//! Text without a heap: a fixed buffer to format a message into, and a writer that passes text on piece by piece.
//!
//! Invariants: `bytes[..len]` is what was written. In a [`FixedText`], text that does not fit is cut, and writing never fails: messages about failures
//! are made here.

use core::fmt::{self, Write};

/// Up to `N` bytes of text.
///
/// ```
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

    /// Appends formatted text: what `write!` calls. It is no implementation of [`Write`], of which each length would have its own.
    ///
    /// # Errors
    /// A value's own: what does not fit is cut.
    ///
    /// ```
    /// use freestone_base::text::FixedText;
    ///
    /// let mut text = FixedText::<8>::new();
    /// assert!(write!(text, "{:#x}", 255).is_ok());
    /// assert_eq!(text.as_bytes(), b"0xff");
    /// ```
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        append_formatted(self.writer(), text)
    }

    /// What appends to the text, for functions that write to any [`Write`].
    ///
    /// ```
    /// use core::fmt::Write;
    /// use freestone_base::text::FixedText;
    ///
    /// let mut text = FixedText::<8>::new();
    /// assert!(text.writer().write_str("a span of blocks").is_ok());
    /// assert_eq!(text.as_bytes(), b"a span o");
    /// ```
    #[inline]
    pub fn writer(&mut self) -> Appending<'_> {
        Appending { bytes: &mut self.bytes, len: &mut self.len }
    }

    /// Ends the text with a newline; without room for it, in the place of the last byte.
    ///
    /// ```
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

/// A [`FixedText`] that is written to, of any length: [`FixedText::writer`].
pub struct Appending<'a> {
    bytes: &'a mut [u8],
    len: &'a mut usize,
}

impl Write for Appending<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        append(self.bytes, self.len, text.as_bytes());
        Ok(())
    }

    fn write_char(&mut self, character: char) -> fmt::Result {
        write_character(self, character)
    }
}

/// Text that is passed on in pieces, each as long as the room that was given for it, but the last.
///
/// ```
/// use core::fmt::Write;
/// use freestone_base::text::Pieces;
///
/// let mut pieces = Vec::new();
/// let mut sink = |piece: &[u8]| Ok(pieces.push(piece.to_vec()));
/// let mut room = [0; 8];
/// let mut text = Pieces::new(&mut room, &mut sink);
/// write!(text, "blocks of {} bytes", 16)?;
/// text.flush()?;
/// assert_eq!(pieces, [&b"blocks o"[..], b"f 16 byt", b"es"]);
/// # Ok::<(), core::fmt::Error>(())
/// ```
pub struct Pieces<'a> {
    room: &'a mut [u8],
    len: usize,
    sink: &'a mut dyn FnMut(&[u8]) -> fmt::Result,
}

impl<'a> Pieces<'a> {
    /// No text yet. `sink` gets the pieces; if it refuses one, what is written fails, and so it does in a room of no bytes.
    ///
    /// ```
    /// use core::fmt::{Error, Write};
    /// use freestone_base::text::Pieces;
    ///
    /// let mut room = [0; 4];
    /// let mut refuse = |_: &[u8]| Err(Error);
    /// let mut text = Pieces::new(&mut room, &mut refuse);
    /// assert!(text.write_str("four").is_ok(), "it waits in the room");
    /// assert!(text.write_str("!").is_err());
    /// ```
    pub fn new(room: &'a mut [u8], sink: &'a mut dyn FnMut(&[u8]) -> fmt::Result) -> Self {
        Self { room, len: 0, sink }
    }

    /// Passes on what waits in the room, if anything does.
    ///
    /// # Errors
    /// The sink refuses it.
    ///
    /// ```
    /// use freestone_base::text::Pieces;
    ///
    /// let mut room = [0; 4];
    /// let mut sink = |_: &[u8]| panic!("there is no text");
    /// assert!(Pieces::new(&mut room, &mut sink).flush().is_ok());
    /// ```
    pub fn flush(&mut self) -> fmt::Result {
        match core::mem::take(&mut self.len) {
            0 => Ok(()),
            len => (self.sink)(self.room.get(..len).unwrap_or_default()),
        }
    }
}

impl Write for Pieces<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if self.len == self.room.len() {
                self.flush()?;
            }
            let before = self.len;
            append(self.room, &mut self.len, rest);
            if self.len == before {
                return Err(fmt::Error);
            }
            rest = rest.get(self.len - before..).unwrap_or_default();
        }
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

/// [`FixedText::write_fmt`]. One function for all lengths.
#[inline(never)]
fn append_formatted(mut writer: Appending<'_>, text: fmt::Arguments<'_>) -> fmt::Result {
    writer.write_fmt(text)
}

/// Writes a character. One function for all that is written to, which is what [`Write`] would have for each.
#[inline(never)]
fn write_character(text: &mut dyn Write, character: char) -> fmt::Result {
    text.write_str(character.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests;
