//! Canaries: bytes behind what the program asked for, which it has no business to write.
//!
//! Up to sixteen bytes: eight made of a secret and the block's address, twice, the last one at the end of the canary. Each byte is at least 128, so
//! that neither a text nor its final zero is one by chance: an overflow by one byte of another kind is missed once in 128.
//!
//! ```text
//!  start             size                 end              a window ends where the canary ends
//!  │ the program's     │ canary, n bytes    │              and may begin before it
//!                ├─────────── window ───────┤
//! ```
//!
//! A small block's canary is written and checked as two words, whatever its length: as a part of a *window*.

use core::ops::Range;

/// Bytes that are written and checked, at most.
pub(crate) const MOST_BYTES: usize = 16;

/// Bytes before the trailer that the neighbour's check looks at.
pub(crate) const LATE_BYTES: usize = 8;

/// The last bytes before the end of a canary.
pub(crate) type Window = [u8; MOST_BYTES];

/// Which bytes of a window are the canary's: those from the place on that is the length of the canary.
static MASKS: [u8; 2 * MOST_BYTES] = {
    let mut masks = [0; 2 * MOST_BYTES];
    let mut at = MOST_BYTES;
    while at < masks.len() {
        masks[at] = u8::MAX;
        at += 1;
    }
    masks
};

/// A window of nothing but canary, and which of its bytes are if its last `n` bytes are. As numbers, not as arrays of words: code that is compiled for
/// size keeps its loops.
#[inline(always)]
fn window_of(n: usize, word: u64) -> (u128, u128) {
    let canary = u128::from(repeated(word));
    let mask =
        MASKS.get(n.min(MOST_BYTES)..).and_then(<[u8]>::first_chunk).map_or(0, |mask| u128::from_le_bytes(*mask));
    (canary | canary << 64, mask)
}

/// The canary that repeats, from the secret's word for an address.
#[inline(always)]
fn repeated(word: u64) -> u64 {
    word | 0x8080_8080_8080_8080
}

/// The bytes of a canary, from its last one backwards.
fn backwards(word: u64) -> impl Iterator<Item = u8> {
    repeated(word).to_be_bytes().into_iter().cycle()
}

/// Where the canary behind `size` bytes lies, if there is room up to `to`.
#[inline(always)]
pub(crate) fn range(size: usize, to: usize) -> Range<usize> {
    size..to.min(size.saturating_add(MOST_BYTES))
}

/// Makes all these bytes a canary.
pub(crate) fn write(bytes: &mut [u8], word: u64) {
    for (byte, canary) in bytes.iter_mut().rev().zip(backwards(word)) {
        *byte = canary;
    }
}

/// The number of the first of these bytes, which are the last ones of a canary, that was written over.
pub(crate) fn damage(bytes: &[u8], word: u64) -> Option<usize> {
    if bytes.try_into().is_ok_and(|window| is_whole(window, MOST_BYTES, word)) {
        return None;
    }
    let wrong = bytes.iter().rev().zip(backwards(word)).enumerate().filter(|(_, (byte, canary))| *byte != canary);
    wrong.last().map(|(from_end, _)| bytes.len() - 1 - from_end)
}

/// Makes the last `n` bytes of a window canary, and those before zero.
#[inline(always)]
pub(crate) fn begin_window(window: &mut Window, n: usize, word: u64) {
    let (canary, mask) = window_of(n, word);
    *window = (canary & mask).to_le_bytes();
}

/// Writes canary over the last `n` bytes of a window.
#[inline]
pub(crate) fn write_window(window: &mut Window, n: usize, word: u64) {
    let ((canary, mask), before) = (window_of(n, word), u128::from_le_bytes(*window));
    *window = (before ^ (before ^ canary) & mask).to_le_bytes();
}

/// Whether the last `n` bytes of a window are canary.
#[inline(always)]
pub(crate) fn is_whole(window: &Window, n: usize, word: u64) -> bool {
    let (canary, mask) = window_of(n, word);
    (u128::from_le_bytes(*window) ^ canary) & mask == 0
}

/// Whether the last eight bytes of a window are canary, as far as its last `n` bytes are.
#[inline(always)]
pub(crate) fn is_late_whole(bytes: u64, n: usize, word: u64) -> bool {
    let (canary, mask) = window_of(n, word);
    (bytes ^ (canary >> 64) as u64) & (mask >> 64) as u64 == 0
}

#[cfg(test)]
mod tests;
