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

/// Blocks of at most this many bytes are filled as a whole.
const WHOLE_BYTES: usize = HEAD_BYTES + TAIL_BYTES;

/// Of longer ones, this much at the start, where most fields are.
const HEAD_BYTES: usize = 64;

/// And this much at the end.
const TAIL_BYTES: usize = 32;

/// Blocks shorter than a head are filled in four pieces of this length; still shorter ones not at all.
pub(crate) const LEAST_BYTES: usize = 16;

/// Every byte of a filled block.
pub(crate) const PATTERN: u8 = 0xD7;

const _: () = assert!(4 * LEAST_BYTES >= HEAD_BYTES);

/// The stretches of a block of `size` bytes that are filled.
fn parts(size: usize) -> [Range<usize>; 2] {
    if size < LEAST_BYTES {
        return [0..0, 0..0];
    }
    if size <= WHOLE_BYTES { [0..size, size..size] } else { [0..HEAD_BYTES, size - TAIL_BYTES..size] }
}

/// The piece of a block that begins at an offset, or where the last one begins.
#[inline(always)]
fn piece(block: &[u8], at: usize) -> Option<&[u8; LEAST_BYTES]> {
    block.get(at.min(block.len().checked_sub(LEAST_BYTES)?)..)?.first_chunk()
}

/// Fills a block, which is marked as freed already. The compiler must not make a call of `memset` out of this: in a process with the library of
/// checked memory functions, that call would be reported as the program's.
#[inline(always)]
pub(crate) fn write(block: &mut [u8]) {
    let size = block.len();
    if size >= HEAD_BYTES {
        if let Some(head) = block.first_chunk_mut() {
            *head = [PATTERN; HEAD_BYTES];
        }
        if let Some(tail) = block.last_chunk_mut() {
            *tail = [PATTERN; TAIL_BYTES];
        }
        return;
    }
    let Some(last) = size.checked_sub(LEAST_BYTES) else { return };
    let mut fill = |at: usize| {
        if let Some(piece) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *piece = [PATTERN; LEAST_BYTES];
        }
    };
    fill(0);
    fill(last.min(LEAST_BYTES));
    fill(last.min(2 * LEAST_BYTES));
    fill(last);
}

/// The offset of the first byte of a block that was written since it was filled.
#[inline]
pub(crate) fn damage(block: &[u8], os_page_bytes: usize) -> Option<usize> {
    if is_whole(block) { None } else { first_of_parts(block, os_page_bytes) }
}

/// Whether all bytes of a block that were filled are pattern.
#[inline(always)]
pub(crate) fn is_whole(block: &[u8]) -> bool {
    if block.len() < HEAD_BYTES {
        return is_short_whole(block);
    }
    let wrong = |at: usize| piece(block, at).map_or(0, wrong_bits);
    let head = wrong(0) | wrong(LEAST_BYTES) | wrong(2 * LEAST_BYTES) | wrong(3 * LEAST_BYTES);
    head | wrong(block.len() - TAIL_BYTES) | wrong(block.len() - LEAST_BYTES) == 0
}

/// As [`is_whole`], of a block shorter than a head.
#[inline(always)]
fn is_short_whole(block: &[u8]) -> bool {
    let wrong = |at: usize| piece(block, at).map_or(0, wrong_bits);
    wrong(0) | wrong(LEAST_BYTES) | wrong(2 * LEAST_BYTES) | wrong(3 * LEAST_BYTES) == 0
}

/// The bits of a piece that are not the pattern's. One piece after the other, not in a loop: code that is compiled for size keeps its loops, which
/// take three times as many instructions.
#[inline(always)]
fn wrong_bits(piece: &[u8; LEAST_BYTES]) -> u128 {
    u128::from_ne_bytes(*piece) ^ u128::from_ne_bytes([PATTERN; LEAST_BYTES])
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
