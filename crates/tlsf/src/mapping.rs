//! Which list a size belongs to: the two-level logarithm, flat.
//!
//! ```text
//! SECOND = 32                                 first level 0   sizes  32 ..  64   32 lists, of which 2 are in use
//! index = (FIRST_LEVEL + first) * 32 + second first level 1   sizes  64 .. 128   32 lists, of which 4 are in use   ...
//!                                             first level 4   sizes 512 .. 1024  32 lists, 16 bytes apart
//!                                             first level 5   sizes 1 Ki .. 2 Ki 32 lists, 32 bytes apart   ...
//! ```
//!
//! The logarithm goes down to the smallest block, though its lists are closer there than sizes are, and some stay empty: so
//! there is no choice to make between the small sizes and the others.
//!
//! Invariants: [`index_of`] is monotonic; every size in the list [`index_to_search`] names, and in every list above it, is
//! at least the size asked for. Both are proven for every size up to 2 MiB, and at every edge above, by the tests.
//! Cost: six instructions, no branch. Safe code; nothing can fail.
//!
//! On x86-64 the logarithm comes from a conversion to floating point, whose exponent and leading bits of mantissa, read as one
//! number, are first and second level. The bit scan that baseline x86-64 has (`bsr`) is microcode on AMD's processors: 1.8 ns
//! each on a Zen 3, where the conversion takes 0.3, and a pair of calls needs three. Elsewhere a scan is one instruction.
//!
//! Source: M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004, section 3.

use crate::block::LEAST_BLOCK_BYTES;
use freestone_base::bits::log2_floor;

/// The unit of sizes and the alignment of every block's payload, in bytes.
pub const GRANULE: usize = 16;

/// The first level of the smallest block: what the exponent of its size in granules, 2.0, is stored as. A multiple of the bits of a
/// word, so that no first level need be taken off before a bit is shifted by it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const FIRST_LEVEL: usize = 1024;
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) const FIRST_LEVEL: usize = 0;

/// The most first levels: sizes have 48 bits in a header.
pub(crate) const MOST_LEVELS: usize = 48 - log2_floor(LEAST_BLOCK_BYTES) as usize;

/// More than any list's number: the most levels, of the most lists each.
pub(crate) const LISTS_END: usize = (FIRST_LEVEL + MOST_LEVELS) * 32;

/// So large that the last bit of its mantissa counts one byte, in granules.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const LARGE: f64 = ((1_u64 << (f64::MANTISSA_DIGITS - 1)) / GRANULE as u64) as f64;

/// First and second level of `bytes + more` as a number of granules less `less`, where `more` are the bits of a number so large that the
/// last bit of its mantissa counts one byte. (The instruction that converts an integer keeps half of its target, and so waits for
/// whatever wrote there last: 5 ns a pair of calls.)
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn levels(bytes: usize, more: u64, less: f64, second: usize) -> usize {
    let granules = f64::from_bits(more + bytes as u64) - less;
    (granules.to_bits() >> (f64::MANTISSA_DIGITS - 1 - log2_floor(second))) as usize
}

/// Index of the list that holds free blocks of `size` bytes, with `second` lists to a first level. `size` is that of a block.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[must_use]
#[inline(always)]
pub(crate) fn index_of(size: usize, second: usize) -> usize {
    levels(size, LARGE.to_bits(), LARGE, second)
}

/// Index of the lowest list in which *every* block has at least `size` bytes. `size` is that of a block.
///
/// One more than the list of half a byte less: a list's least size is then its own, and any other belongs to the next list.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[must_use]
#[inline(always)]
pub(crate) fn index_to_search(size: usize, second: usize) -> usize {
    const HALF_A_BYTE: f64 = 0.5 / GRANULE as f64;
    levels(size, LARGE.to_bits() - 1, LARGE - HALF_A_BYTE, second) + 1
}

/// As above, by bit scan.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[must_use]
#[inline(always)]
pub(crate) fn index_of(size: usize, second: usize) -> usize {
    let (shift, level) = scan(size, second);
    level.wrapping_add(size >> shift)
}

/// As above, by bit scan.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[must_use]
#[inline(always)]
pub(crate) fn index_to_search(size: usize, second: usize) -> usize {
    let (shift, level) = scan(size, second);
    level.wrapping_add((size + (1 << shift) - 1) >> shift)
}

/// How many low bits of `size` do not matter, and what the others are to be added to.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
fn scan(size: usize, second: usize) -> (u32, usize) {
    let log2 = log2_floor(size);
    (
        log2 - log2_floor(second),
        (log2 as usize).wrapping_sub(log2_floor(LEAST_BLOCK_BYTES) as usize + 1).wrapping_mul(second),
    )
}

/// The smallest size that no list of a heap with these levels can hold.
#[must_use]
pub(crate) const fn size_limit(first: usize) -> usize {
    let log2 = log2_floor(LEAST_BLOCK_BYTES) as usize + first;
    if log2 >= usize::BITS as usize - 1 { 1 << (usize::BITS - 1) } else { 1 << log2 }
}

#[cfg(test)]
mod tests;
