//! What a freed block is filled with, so that a later write to it is seen.
//!
//! All of a block up to [`WHOLE_BYTES`], the head and the tail of a longer one. As an address the pattern is not canonical: a program that
//! follows a pointer that it reads from a freed block faults.
//!
//! A block is filled and checked by stores and loads of a few fixed lengths that may overlap, not byte by byte: which ones is decided by
//! the block's length alone.
//!
//! The OS pages of a free block but the first may be purged while it is free: they read as zero then. So zeros from a place in such an OS page to
//! its end, or to the end of what is checked, are no damage.

use core::ops::Range;
use core::sync::atomic::{Ordering, compiler_fence};
use freestone_base::bytes::chunks;

/// Blocks of at most this many bytes are filled as a whole.
const WHOLE_BYTES: usize = HEAD_BYTES + TAIL_BYTES;

/// Of longer ones, this much at the start, where most fields are.
const HEAD_BYTES: usize = 64;

/// And this much at the end.
const TAIL_BYTES: usize = 32;

/// Blocks of at least this many bytes, and less than a head, are filled in four pieces of this length.
const PIECE_BYTES: usize = 16;

/// Every byte of a filled block.
pub(crate) const PATTERN: u8 = 0xD7;

const _: () = assert!(4 * PIECE_BYTES >= HEAD_BYTES);

/// The stretches of a block of `size` bytes that are filled.
fn parts(size: usize) -> [Range<usize>; 2] {
    if size <= WHOLE_BYTES { [0..size, size..size] } else { [0..HEAD_BYTES, size - TAIL_BYTES..size] }
}

/// Where the pieces of a block of `size` bytes begin, which together are the block.
#[inline(always)]
fn pieces(size: usize) -> [usize; 4] {
    let last = size - PIECE_BYTES;
    [0, last.min(PIECE_BYTES), last.min(2 * PIECE_BYTES), last]
}

/// Fills a block, which is marked as freed already. The compiler must not make a call of `memset` out of this: in a process with the library of
/// checked memory functions, that call would be reported as the program's.
#[inline(always)]
pub(crate) fn write(block: &mut [u8]) {
    let size = block.len();
    if size < PIECE_BYTES {
        for byte in block {
            *byte = PATTERN;
            compiler_fence(Ordering::Release);
        }
        return;
    }
    if size < HEAD_BYTES {
        for at in pieces(size) {
            if let Some(piece) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *piece = [PATTERN; PIECE_BYTES];
            }
        }
        return;
    }
    if let Some(head) = block.first_chunk_mut() {
        *head = [PATTERN; HEAD_BYTES];
    }
    if let Some(tail) = block.last_chunk_mut() {
        *tail = [PATTERN; TAIL_BYTES];
    }
}

/// The offset of the first byte of a block that was written since it was filled.
#[inline]
pub(crate) fn damage(block: &[u8], os_page_bytes: usize) -> Option<usize> {
    if is_whole(block) { None } else { first_of_parts(block, os_page_bytes) }
}

/// Whether all bytes of a block that were filled are pattern.
#[inline(always)]
pub(crate) fn is_whole(block: &[u8]) -> bool {
    let size = block.len();
    if size < PIECE_BYTES {
        return block.iter().all(|byte| *byte == PATTERN);
    }
    if size < HEAD_BYTES {
        let wrong = |at: usize| block.get(at..).and_then(<[u8]>::first_chunk::<PIECE_BYTES>).map_or(!0, wrong_bits);
        return pieces(size).into_iter().fold(0, |all, at| all | wrong(at)) == 0;
    }
    let head = block.first_chunk::<HEAD_BYTES>().map_or(!0, wrong_bits);
    head | block.last_chunk::<TAIL_BYTES>().map_or(!0, wrong_bits) == 0
}

/// 0 if all these bytes are pattern. A comparison of arrays would be a call.
#[inline(always)]
fn wrong_bits<const BYTES: usize>(bytes: &[u8; BYTES]) -> u64 {
    let words = chunks::<8>(bytes).0.iter().map(|word| u64::from_ne_bytes(*word) ^ u64::from_ne_bytes([PATTERN; 8]));
    words.fold(0, |all, word| all | word)
}

/// The first byte of a block that was written.
#[cold]
fn first_of_parts(block: &[u8], os_page_bytes: usize) -> Option<usize> {
    let [head, tail] = parts(block.len());
    first_damage(block, head, os_page_bytes).or_else(|| first_damage(block, tail, os_page_bytes))
}

/// The first byte of a part of a block that was written: what was purged is skipped.
fn first_damage(block: &[u8], part: Range<usize>, os_page_bytes: usize) -> Option<usize> {
    let start = block.as_ptr().addr();
    let page_end = |at: usize| at + os_page_bytes - (start + at) % os_page_bytes;
    let mut at = part.start;
    while at < part.end {
        if block[at] == PATTERN {
            at += 1;
            continue;
        }
        let to = page_end(at).min(part.end);
        if at < page_end(0) || block[at..to].iter().any(|byte| *byte != 0) {
            return Some(at);
        }
        at = to;
    }
    None
}

#[cfg(test)]
mod tests;
