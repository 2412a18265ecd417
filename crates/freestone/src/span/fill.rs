//! What a freed block is filled with, so that a later write to it is seen.
#![allow(unsafe_code)]
//!
//! All of a block up to [`WHOLE_BYTES`], the head and the tail of a longer one. As an address the pattern is not canonical: a program that
//! follows a pointer that it reads from a freed block faults.
//!
//! The OS pages of a free block but the first may be purged while it is free: they read as zero then. So a stretch of zeros that covers all that
//! is checked in such an OS page is no damage.
//!
//! # Safety
//! The functions read or write the bytes they are told to.

/// Blocks of at most this many bytes are filled as a whole.
const WHOLE_BYTES: usize = 512;

/// Of longer ones, this much at either end.
const PART_BYTES: usize = WHOLE_BYTES / 2;

/// Every byte of a filled block.
pub(crate) const PATTERN: u8 = 0xD7;

const WORD: u64 = u64::from_ne_bytes([PATTERN; 8]);

/// The stretches of a block of `size` bytes that are filled.
#[inline]
fn parts(size: usize) -> [core::ops::Range<usize>; 2] {
    if size <= WHOLE_BYTES { [0..size, size..size] } else { [0..PART_BYTES, size - PART_BYTES..size] }
}

/// Fills the first `size` bytes at `start`.
///
/// # Safety
/// - They are the caller's.
#[inline]
pub(crate) unsafe fn write(start: *mut u8, size: usize) {
    for part in parts(size) {
        // SAFETY: the part is below `size`, and so the caller's.
        unsafe { start.add(part.start).write_bytes(PATTERN, part.len()) };
    }
}

/// The offset of the first byte, of the first `size` at `start`, that was written since they were filled.
///
/// # Safety
/// - The bytes are mapped, and nobody writes them meanwhile.
#[inline]
pub(crate) unsafe fn damage(start: *mut u8, size: usize, os_page_bytes: usize) -> Option<usize> {
    for part in parts(size) {
        let mut at = part.start;
        // SAFETY: the part is below `size`, and so mapped.
        while let Some(other) = unsafe { first_other(start, at..part.end) } {
            // SAFETY: as above.
            if let Some(damage) = unsafe { explain(start, other, part.end, os_page_bytes) } {
                return Some(damage);
            }
            // What is left of this OS page was purged.
            at = other + os_page_bytes - (start.addr() + other) % os_page_bytes;
        }
    }
    None
}

/// The first byte of a range that is not the pattern's.
///
/// # Safety
/// - The bytes are mapped.
#[inline]
unsafe fn first_other(start: *mut u8, range: core::ops::Range<usize>) -> Option<usize> {
    let mut at = range.start.min(range.end);
    while at + 8 <= range.end {
        // SAFETY: eight bytes from `at` are in the range.
        if unsafe { start.add(at).cast::<u64>().read_unaligned() } != WORD {
            break;
        }
        at += 8;
    }
    // SAFETY: `at` is in the range.
    (at..range.end).find(|&at| unsafe { start.add(at).read() } != PATTERN)
}

/// The first byte from offset `from` to `to` that was written, or `None` if all that lies behind the block's first OS page is zero, because it was
/// purged.
///
/// # Safety
/// - The bytes are mapped.
#[cold]
pub(super) unsafe fn explain(start: *mut u8, from: usize, to: usize, os_page_bytes: usize) -> Option<usize> {
    let first_page_end = os_page_bytes - start.addr() % os_page_bytes;
    let page_end = from + os_page_bytes - (start.addr() + from) % os_page_bytes;
    // SAFETY: the bytes from `from` to `to` are mapped.
    let mut piece = (from..page_end.min(to)).map(|at| unsafe { start.add(at).read() });
    if from < first_page_end || piece.any(|byte| byte != 0) { Some(from) } else { None }
}

#[cfg(test)]
mod tests;
