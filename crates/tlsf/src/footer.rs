//! The overrun footer: what a heap of the policy [`WithFooters`](crate::WithFooters) puts behind each block.
//!
//! ```text
//! | header | payload: the requested bytes | slack, all FILL | footer |
//!                                          0 .. 31 bytes     8 bytes: requested bytes ^ the footer's address, rotated ^ the heap's seal
//! ```
//!
//! Invariant: while the block is used, slack and footer are as drawn; one byte written past the request breaks that.
//! Cost: at most 39 bytes written by an allocation and compared by a deallocation.
//!
//! # Safety
//! The callers pass used blocks of their heap with the size of their header: header, footer and all between lie in the region.
#![allow(unsafe_code)]

use crate::block::Block;
use crate::block_size::HEADER_BYTES;
use crate::header::Sealer;
use core::ptr::NonNull;

/// Bytes of one footer.
pub(crate) const FOOTER_BYTES: usize = 8;

/// The longest slack: 15 bytes of rounding to the granule, and a remainder of 16 that is too short to be a block.
const MOST_SLACK_BYTES: usize = 15 + 16;

/// The byte that slack is filled with: neither 0 nor ASCII, and odd.
const FILL: u8 = 0xFD;

/// # Safety
/// - The block is used and has `size` bytes, 32 or more.
unsafe fn footer_of(block: Block, size: usize) -> NonNull<u8> {
    // SAFETY: the footer is the last word of the block, which is in a region.
    unsafe { block.payload().byte_add(size - FOOTER_BYTES - HEADER_BYTES) }
}

/// The footer's word, at `footer`, of a block that serves a request for `requested` bytes.
fn word_at(footer: NonNull<u8>, requested: u64, sealer: Sealer) -> u64 {
    // Rotated, so that bits of the address in which two places differ do not meet those of a size.
    requested ^ sealer.key() ^ (footer.addr().get() as u64).rotate_left(32)
}

/// Writes slack and footer of `block`, which has `size` bytes and serves a request for `requested` bytes.
///
/// # Safety
/// - The block is used and has `size` bytes, 32 or more.
/// - `requested + HEADER_BYTES + FOOTER_BYTES <= size`.
pub(crate) unsafe fn write(block: Block, size: usize, requested: usize, sealer: Sealer) {
    // SAFETY: the block has `size` bytes.
    let footer = unsafe { footer_of(block, size) };
    let slack = size - HEADER_BYTES - FOOTER_BYTES - requested;
    // SAFETY: the slack lies in front of the footer, behind the requested bytes.
    let fill = unsafe { footer.byte_sub(slack) };
    // SAFETY: those `slack` bytes are in the block, and beyond the request.
    unsafe { fill.write_bytes(FILL, slack) };
    // SAFETY: the footer is the block's last word, at a multiple of 8.
    unsafe { footer.cast::<u64>().write(word_at(footer, requested as u64, sealer)) };
}

/// The number of requested bytes, if footer and slack of `block`, which has `size` bytes, are intact.
///
/// # Safety
/// - The block is used, has `size` bytes, 32 or more, and a footer was written for it.
pub(crate) unsafe fn read(block: Block, size: usize, sealer: Sealer) -> Option<usize> {
    // SAFETY: the block has `size` bytes.
    let footer = unsafe { footer_of(block, size) };
    // SAFETY: a footer was written there, at a multiple of 8.
    let word = unsafe { footer.cast::<u64>().read() };
    let requested = usize::try_from(word_at(footer, word, sealer)).ok()?;
    let slack = (size - HEADER_BYTES - FOOTER_BYTES).checked_sub(requested)?;
    if requested == 0 || slack > MOST_SLACK_BYTES {
        return None;
    }
    let is_filled = |back: usize| {
        // SAFETY: `back` is at most the slack, which lies in the block in front of the footer.
        let byte = unsafe { footer.byte_sub(back) };
        // SAFETY: `write` filled the slack.
        FILL == unsafe { byte.read() }
    };
    (1..=slack).all(is_filled).then_some(requested)
}

#[cfg(test)]
mod tests;
