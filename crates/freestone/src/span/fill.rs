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
use freestone_base::align;

/// Blocks of at most this many bytes are filled as a whole.
const WHOLE_BYTES: usize = HEAD_BYTES + TAIL_BYTES;

/// Of longer ones, this much at the start, where most fields are.
const HEAD_BYTES: usize = 64;

/// And this much at the end.
const TAIL_BYTES: usize = 32;

/// Blocks are filled in pieces of this length; shorter ones not at all.
pub(crate) const LEAST_BYTES: usize = 16;

/// Every byte of a filled block.
pub(crate) const PATTERN: u8 = 0xD7;

/// A word of them.
const WORD: u64 = u64::from_ne_bytes([PATTERN; 8]);

const _: () = assert!(4 * LEAST_BYTES == HEAD_BYTES && 2 * LEAST_BYTES == TAIL_BYTES);

/// The stretches of a block of `size` bytes that are filled.
fn parts(size: usize) -> [Range<usize>; 2] {
    if size < LEAST_BYTES {
        return [0..0, 0..0];
    }
    if size <= WHOLE_BYTES { [0..size, size..size] } else { [0..HEAD_BYTES, size - TAIL_BYTES..size] }
}

/// Which pieces of a block of `size` bytes there are, of [`LEAST_BYTES`] each: none, or the first and the last; those beside them; those that complete a head.
#[inline(always)]
fn has_pieces(size: usize) -> [bool; 3] {
    [size >= LEAST_BYTES, size > 2 * LEAST_BYTES, size > HEAD_BYTES]
}

/// Fills a block, which is marked as freed already. The compiler must not make a call of `memset` out of this: in a process with the library of
/// checked memory functions, that call would be reported as the program's.
#[inline(always)]
pub(crate) fn write(block: &mut [u8]) {
    let size = block.len();
    let mut fill = |at: usize| {
        if let Some(piece) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *piece = [PATTERN; LEAST_BYTES];
        }
    };
    let [any, more, whole_head] = has_pieces(size);
    if any {
        fill(0);
        fill(size - LEAST_BYTES);
        if more {
            fill(LEAST_BYTES);
            fill(size - 2 * LEAST_BYTES);
            if whole_head {
                fill(2 * LEAST_BYTES);
                fill(3 * LEAST_BYTES);
            }
        }
    }
}

/// The offset of the first byte of a block that was written since it was filled.
#[cold]
#[inline(never)]
pub(crate) fn damage(block: &[u8], os_page_bytes: usize) -> Option<usize> {
    let word =
        |at: usize| block.get(at..).and_then(<[u8]>::first_chunk).map_or(!WORD, |bytes| u64::from_ne_bytes(*bytes));
    if is_whole(block.len(), word) { None } else { first_of_parts(block, os_page_bytes) }
}

/// Whether all bytes of a block of `size` bytes that were filled are pattern. `word` reads eight of its bytes at an offset, below the last seven.
///
/// Word by word, each of which is compared in memory: longer numbers would be moved to registers first, and a loop stays one in code that is compiled for
/// size.
#[inline(always)]
pub(crate) fn is_whole(size: usize, word: impl Fn(usize) -> u64) -> bool {
    let [any, more, whole_head] = has_pieces(size);
    if any {
        let last = size - LEAST_BYTES;
        if word(0) != WORD || word(8) != WORD || word(last) != WORD || word(last + 8) != WORD {
            return false;
        }
    }
    if more {
        let last = size - 2 * LEAST_BYTES;
        if word(16) != WORD || word(24) != WORD || word(last) != WORD || word(last + 8) != WORD {
            return false;
        }
    }
    !whole_head || word(32) == WORD && word(40) == WORD && word(48) == WORD && word(56) == WORD
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
    let page_end = |at: usize| align::up(start + at + 1, os_page_bytes) - start;
    let mut at = part.start;
    while at < part.end {
        if block.get(at) == Some(&PATTERN) {
            at += 1;
            continue;
        }
        let to = page_end(at).min(part.end);
        let is_zero = block.get(at..to).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
        if at < page_end(0) || !is_zero {
            return Some(at);
        }
        at = to;
    }
    None
}

#[cfg(test)]
mod tests;
