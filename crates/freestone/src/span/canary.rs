//! Canaries: bytes behind what the program asked for, which it has no business to write.
//!
//! Eight bytes made of a secret and the block's address, over and over, by the offset in the block: a canary is right whatever the size was when it
//! was written. Each byte is at least 128, so that neither a text nor its final zero is one by chance: an overflow by one byte of another kind is
//! missed once in 128.
//!
//! ```text
//!  start             size                 end              a window ends where the canary ends
//!  │ the program's     │ canary, n bytes    │              and may begin before it
//!                ├─────────── window ───────┤
//! ```
//!
//! A small block's canary is written and checked as three words, whatever its length: as a part of a *window*, of whose first bytes a check
//! makes nothing.

use core::ops::Range;

/// Bytes that are written and checked, at most.
pub(crate) const MOST_BYTES: usize = 24;

/// Bytes before the trailer that the neighbour's check looks at.
pub(crate) const LATE_BYTES: usize = 8;

/// The last bytes before the end of a canary.
pub(crate) type Window = [u8; MOST_BYTES];

/// For each length of a canary, from that many bytes before the end on, which bytes of a window are the canary's.
static MASKS: [u8; 2 * MOST_BYTES] = {
    let mut masks = [0; 2 * MOST_BYTES];
    let mut at = MOST_BYTES;
    while at < masks.len() {
        masks[at] = 0xff;
        at += 1;
    }
    masks
};

/// The canary that repeats, from the secret's word for an address.
#[inline]
fn repeated(word: u64) -> u64 {
    word | 0x8080_8080_8080_8080
}

/// The eight bytes of canary at `offset` of a block.
#[inline]
fn word_at(offset: usize, word: u64) -> u64 {
    repeated(word).rotate_right((offset % 8 * 8) as u32)
}

/// Where the canary behind `size` bytes lies, if there is room up to `to`.
#[inline]
pub(crate) fn range(size: usize, to: usize) -> Range<usize> {
    size..to.min(size.saturating_add(MOST_BYTES))
}

/// Writes a canary over bytes that begin at offset `from` of a block.
#[inline]
pub(crate) fn write(bytes: &mut [u8], from: usize, word: u64) {
    let canary = repeated(word).to_le_bytes();
    for (at, byte) in (from..).zip(bytes) {
        *byte = canary[at % 8];
    }
}

/// Writes canary over a window that ends at offset `end` of a block, all of it.
#[inline]
pub(crate) fn write_window(window: &mut Window, end: usize, word: u64) {
    let canary = word_at(end, word).to_le_bytes();
    for bytes in window.as_chunks_mut::<8>().0 {
        *bytes = canary;
    }
}

/// Whether the last `n` bytes of a window that ends at offset `end` of a block are canary.
#[inline]
pub(crate) fn is_whole(window: &Window, end: usize, n: usize, word: u64) -> bool {
    let canary = word_at(end, word);
    let masks = MASKS.get(n..).and_then(<[u8]>::first_chunk::<MOST_BYTES>).unwrap_or(&[0xff; MOST_BYTES]);
    let words = window.as_chunks::<8>().0.iter().zip(masks.as_chunks::<8>().0);
    words.fold(0, |wrong, (bytes, mask)| wrong | (u64::from_le_bytes(*bytes) ^ canary) & u64::from_le_bytes(*mask)) == 0
}

/// Whether eight bytes at offset `from` of a block are canary.
#[inline]
pub(crate) fn is_whole_word(bytes: &[u8; 8], from: usize, word: u64) -> bool {
    u64::from_le_bytes(*bytes) == word_at(from, word)
}

/// The offset in the block of the first of these bytes, which begin at offset `from`, that is not the canary's.
#[inline]
pub(crate) fn damage(bytes: &[u8], from: usize, word: u64) -> Option<usize> {
    let canary = repeated(word).to_le_bytes();
    (from..).zip(bytes).find(|&(at, &byte)| byte != canary[at % 8]).map(|(at, _)| at)
}

#[cfg(test)]
mod tests;
