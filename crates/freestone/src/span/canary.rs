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
//! A small block's canary is written and checked as three words, whatever its length: as a part of a *window*, the first bytes of which stay as
//! they are.

use core::ops::Range;
use freestone_base::bytes;

/// Bytes that are written and checked, at most.
pub(crate) const MOST_BYTES: usize = 24;

/// Bytes before the trailer that the neighbour's check looks at.
pub(crate) const LATE_BYTES: usize = 8;

/// The last bytes before the end of a canary.
pub(crate) type Window = [u8; MOST_BYTES];

/// Which bytes of a window are the canary's, for each length of the canary.
static MASKS: [[u64; 3]; MOST_BYTES + 1] = {
    let mut masks = [[0; 3]; MOST_BYTES + 1];
    let mut n = 0;
    while n < masks.len() {
        let mut at = MOST_BYTES - n;
        while at < MOST_BYTES {
            masks[n][at / 8] |= 0xff << (at % 8 * 8);
            at += 1;
        }
        n += 1;
    }
    masks
};

/// The canary that repeats, from the secret's word for an address.
#[inline(always)]
fn repeated(word: u64) -> u64 {
    word | 0x8080_8080_8080_8080
}

/// The eight bytes of canary at `offset` of a block.
#[inline(always)]
pub(crate) fn word_at(offset: usize, word: u64) -> u64 {
    repeated(word).rotate_right((offset % 8 * 8) as u32)
}

/// Where the canary behind `size` bytes lies, if there is room up to `to`.
#[inline(always)]
pub(crate) fn range(size: usize, to: usize) -> Range<usize> {
    size..to.min(size.saturating_add(MOST_BYTES))
}

/// Writes a canary over bytes that begin at offset `from` of a block.
#[inline(always)]
pub(crate) fn write(bytes: &mut [u8], from: usize, word: u64) {
    let canary = repeated(word).to_le_bytes();
    for (at, byte) in (from..).zip(bytes) {
        *byte = canary[at % 8];
    }
}

/// Writes canary over the last `n` bytes of a window that ends at offset `end` of a block.
#[inline(always)]
pub(crate) fn write_window(window: &mut Window, end: usize, n: usize, word: u64) {
    let canary = word_at(end, word);
    for (bytes, mask) in bytes::chunks_mut::<8>(window).0.iter_mut().zip(&MASKS[n.min(MOST_BYTES)]) {
        let before = u64::from_le_bytes(*bytes);
        *bytes = (before ^ (before ^ canary) & mask).to_le_bytes();
    }
}

/// Whether the last `n` bytes of a window that ends at offset `end` of a block are canary.
#[inline(always)]
pub(crate) fn is_whole(window: &Window, end: usize, n: usize, word: u64) -> bool {
    let canary = word_at(end, word);
    let words = bytes::chunks::<8>(window).0.iter().zip(&MASKS[n.min(MOST_BYTES)]);
    words.fold(0, |wrong, (bytes, mask)| wrong | (u64::from_le_bytes(*bytes) ^ canary) & mask) == 0
}

/// The offset in the block of the first of these bytes, which begin at offset `from`, that is not the canary's.
#[inline(always)]
pub(crate) fn damage(bytes: &[u8], from: usize, word: u64) -> Option<usize> {
    let canary = repeated(word).to_le_bytes();
    (from..).zip(bytes).find(|&(at, &byte)| byte != canary[at % 8]).map(|(at, _)| at)
}

#[cfg(test)]
mod tests;
