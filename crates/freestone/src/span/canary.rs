//! Canaries: bytes behind what the program asked for, which it has no business to write.
#![allow(unsafe_code)]
//!
//! Eight bytes made of a secret and the block's address, over and over, by the offset in the block: a canary is right whatever the size was when it
//! was written. Each byte is at least 128, so that neither a text nor its final zero is one by chance: the chance of a wrong byte is 1 in 128.
//!
//! # Safety
//! The functions read or write the bytes they are told to.

/// Bytes that are written and checked, at most.
pub(crate) const MOST_BYTES: usize = 64;

/// Bytes before the trailer that the neighbour's check looks at.
pub(crate) const LATE_BYTES: usize = 12;

/// The canary that repeats, from the secret's word for an address.
#[inline]
fn repeated(word: u64) -> u64 {
    word | 0x8080_8080_8080_8080
}

#[inline]
fn byte(canary: u64, offset: usize) -> u8 {
    (canary >> (8 * (offset % 8))) as u8
}

/// Writes a canary from offset `from` of a block to offset `to`, or as far as canaries go.
///
/// # Safety
/// - These bytes are the caller's, and `start` is aligned to 8.
#[inline]
pub(crate) unsafe fn write(start: *mut u8, from: usize, to: usize, word: u64) {
    let (canary, to) = (repeated(word), to.min(from.saturating_add(MOST_BYTES)));
    let mut at = from;
    while at < to {
        if at.is_multiple_of(8) && at + 8 <= to {
            // SAFETY: eight bytes from `at` are below `to`, and so the caller's; the address is aligned.
            unsafe { start.add(at).cast::<u64>().write(canary.to_le()) };
            at += 8;
        } else {
            // SAFETY: the byte is below `to`, and so the caller's.
            unsafe { start.add(at).write(byte(canary, at)) };
            at += 1;
        }
    }
}

/// The offset of the first byte from `from` to `to`, or as far as canaries go, that is not the canary's.
///
/// # Safety
/// - These bytes are mapped, and nobody writes anything but the canary to them meanwhile; `start` is aligned to 8.
#[inline]
pub(crate) unsafe fn damage(start: *mut u8, from: usize, to: usize, word: u64) -> Option<usize> {
    let (canary, to) = (repeated(word), to.min(from.saturating_add(MOST_BYTES)));
    let mut at = from;
    while at < to {
        // SAFETY: the bytes are below `to`, and so mapped; the address of a word is aligned.
        unsafe {
            if at.is_multiple_of(8) && at + 8 <= to && start.add(at).cast::<u64>().read() == canary.to_le() {
                at += 8;
            } else if start.add(at).read() == byte(canary, at) {
                at += 1;
            } else {
                return Some(at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
