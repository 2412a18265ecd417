//! What a freed block is filled with, so that a later write to it is seen.
//!
//! All of a block up to [`WHOLE_BYTES`], the head and the tail of a longer one. As an address the pattern is not canonical: a program that
//! follows a pointer that it reads from a freed block faults.
//!
//! The OS pages of a free block but the first may be purged while it is free: they read as zero then. So zeros from a place in such an OS page to
//! its end, or to the end of what is checked, are no damage.

use core::ops::Range;
use core::sync::atomic::{Ordering, compiler_fence};

/// Blocks of at most this many bytes are filled as a whole.
const WHOLE_BYTES: usize = 128;

/// Of longer ones, this much at either end.
const PART_BYTES: usize = WHOLE_BYTES / 2;

/// Every byte of a filled block.
pub(crate) const PATTERN: u8 = 0xD7;

/// The stretches of a block of `size` bytes that are filled.
#[inline]
fn parts(size: usize) -> [Range<usize>; 2] {
    if size <= WHOLE_BYTES { [0..size, size..size] } else { [0..PART_BYTES, size - PART_BYTES..size] }
}

/// Fills a block, which is marked as freed already. The compiler must not make a call of `memset` out of this: in a process with the library of
/// checked memory functions, that call would be reported as the program's.
#[inline]
pub(crate) fn write(block: &mut [u8]) {
    for part in parts(block.len()) {
        if let Some(part) = block.get_mut(part) {
            let (chunks, rest) = part.as_chunks_mut::<PART_BYTES>();
            for chunk in chunks {
                *chunk = [PATTERN; PART_BYTES];
                compiler_fence(Ordering::Release);
            }
            let (words, rest) = rest.as_chunks_mut::<8>();
            for word in words {
                *word = [PATTERN; 8];
                compiler_fence(Ordering::Release);
            }
            for byte in rest {
                *byte = PATTERN;
                compiler_fence(Ordering::Release);
            }
        }
    }
}

/// The offset of the first byte of a block that was written since it was filled.
#[inline]
pub(crate) fn damage(block: &[u8], os_page_bytes: usize) -> Option<usize> {
    let [head, tail] = parts(block.len());
    if is_whole(block.get(head.clone())?) && is_whole(block.get(tail.clone())?) {
        return None;
    }
    first_damage(block, head, os_page_bytes).or_else(|| first_damage(block, tail, os_page_bytes))
}

/// Whether these bytes are all pattern.
#[inline]
fn is_whole(bytes: &[u8]) -> bool {
    // An equality of so many bytes is a few vector instructions.
    let (chunks, rest) = bytes.as_chunks::<PART_BYTES>();
    let (words, rest) = rest.as_chunks::<8>();
    chunks.iter().all(|chunk| *chunk == [PATTERN; PART_BYTES])
        && words.iter().all(|word| *word == [PATTERN; 8])
        && rest.iter().all(|byte| *byte == PATTERN)
}

/// The first byte of a part of a block that was written: what was purged is skipped.
#[cold]
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
