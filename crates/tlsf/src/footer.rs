//! The overrun footer: what a [`crate::Guarded`] heap puts behind each block.
//!
//! ```text
//! | header | payload: the bytes asked for | slack, all FILL | footer |
//!                                          0 .. 31 bytes     8 bytes: bytes asked for, mixed with the footer's address and the heap's seal
//! ```
//!
//! Invariant: while the block is used, slack and footer are as drawn; one byte written past the request breaks it.
//! Cost: at most 39 bytes written at allocation and compared at deallocation.
//!
//! # Safety
//! Blocks passed in are used blocks of the caller's heap, of the `size` given.
#![allow(unsafe_code)]

use crate::block::{Block, HEADER_BYTES, Sealer};
use core::ptr::NonNull;

/// Bytes of one footer.
pub(crate) const FOOTER_BYTES: usize = 8;

/// Longest slack: rounding to the granule, and a remainder too small to be split off.
const MOST_SLACK_BYTES: usize = 15 + 16;

/// What slack is filled with: not 0, not ASCII, odd.
const FILL: u8 = 0xFD;

fn footer_at(block: Block, size: usize) -> NonNull<u8> {
    // SAFETY: the last word of the block.
    unsafe { block.after(size - FOOTER_BYTES - HEADER_BYTES).payload() }
}

/// Writes the footer of `block`, which serves a request for `requested` bytes.
///
/// # Safety
/// See the file's header; `requested + HEADER_BYTES + FOOTER_BYTES <= size`.
pub(crate) unsafe fn write(block: Block, size: usize, requested: usize, sealer: Sealer) {
    let footer = footer_at(block, size);
    let slack = size - HEADER_BYTES - FOOTER_BYTES - requested;
    // SAFETY: slack and footer are the last bytes of the block.
    unsafe {
        footer.byte_sub(slack).write_bytes(FILL, slack);
        footer.cast::<u64>().write(requested as u64 ^ sealer.key() ^ footer.addr().get() as u64);
    }
}

/// The bytes asked for, if the footer of `block` is whole.
///
/// # Safety
/// See the file's header.
pub(crate) unsafe fn read(block: Block, size: usize, sealer: Sealer) -> Option<usize> {
    let footer = footer_at(block, size);
    // SAFETY: the last word of a used block of a guarded heap is its footer.
    let word = unsafe { footer.cast::<u64>().read() } ^ sealer.key() ^ footer.addr().get() as u64;
    let requested = usize::try_from(word).ok()?;
    let slack = (size - HEADER_BYTES - FOOTER_BYTES).checked_sub(requested)?;
    if requested == 0 || slack > MOST_SLACK_BYTES {
        return None;
    }
    // SAFETY: the slack lies inside the block, and `write` filled it.
    let filled = (1..=slack).all(|back| unsafe { footer.byte_sub(back).read() } == FILL);
    filled.then_some(requested)
}
