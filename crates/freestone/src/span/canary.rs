//! Canaries: bytes behind what the program asked for, which it has no business to write.
//!
//! Eight bytes made of a secret and the block's address, over and over, by the offset in the block: a canary is right whatever the size was when it
//! was written. Each byte is at least 128, so that neither a text nor its final zero is one by chance: an overflow by one byte of another kind is
//! missed once in 128.

use core::ops::Range;

/// Bytes that are written and checked, at most.
pub(crate) const MOST_BYTES: usize = 24;

/// Bytes before the trailer that the neighbour's check looks at.
pub(crate) const LATE_BYTES: usize = 12;

/// The canary that repeats, from the secret's word for an address.
#[inline]
fn repeated(word: u64) -> [u8; 8] {
    (word | 0x8080_8080_8080_8080).to_le_bytes()
}

/// Where the canary behind `size` bytes lies, if there is room up to `to`.
#[inline]
pub(crate) fn range(size: usize, to: usize) -> Range<usize> {
    size..to.min(size.saturating_add(MOST_BYTES))
}

/// Writes a canary over bytes that begin at offset `from` of a block.
#[inline]
pub(crate) fn write(bytes: &mut [u8], from: usize, word: u64) {
    let canary = repeated(word);
    for (at, byte) in (from..).zip(bytes) {
        *byte = canary[at % 8];
    }
}

/// The offset in the block of the first of these bytes, which begin at offset `from`, that is not the canary's.
#[inline]
pub(crate) fn damage(bytes: &[u8], from: usize, word: u64) -> Option<usize> {
    let canary = repeated(word);
    (from..).zip(bytes).find(|&(at, &byte)| byte != canary[at % 8]).map(|(at, _)| at)
}

#[cfg(test)]
mod tests;
