//! Which list a size belongs to: the two-level logarithm, flat.
//!
//! ```text
//! SECOND = 32                     first level 0   sizes  0 ..  512   32 lists, 16 bytes apart
//! index = first * 32 + second     first level 1   sizes 512 .. 1024   32 lists, 16 bytes apart
//!                                 first level 2   sizes 1 Ki .. 2 Ki   32 lists, 32 bytes apart
//!                                 first level 3   sizes 2 Ki .. 4 Ki   32 lists, 64 bytes apart   ...
//! ```
//!
//! Invariants: [`index_of`] is monotonic; every size in the list [`index_to_search`] names, and in every list above it, is
//! at least the size asked for. Both are proven for every size up to 2 MiB, and at every edge above, by the tests.
//! Cost: nine instructions, no branch. Safe code; nothing can fail.
//!
//! On x86-64 the logarithm comes from a conversion to floating point, whose exponent and leading bits of mantissa, read as one
//! number, are first and second level. The bit scan that baseline x86-64 has (`bsr`) is microcode on AMD's processors: 1.8 ns
//! each on a Zen 3, where the conversion takes 0.3, and a pair of calls needs three. Elsewhere a scan is one instruction.
//!
//! Source: M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004, section 3.

use core::hint::select_unpredictable;
use freestone_base::bits::log2_floor;

/// The unit of sizes and the alignment of every block's payload, in bytes.
pub const GRANULE: usize = 16;

/// log2 of the edge between first level 0 (linear) and the powers of two: `SECOND` granules.
const fn edge_log2(second: usize) -> u32 {
    log2_floor(second * GRANULE)
}

/// Where `size` falls if every doubling is cut into `second` lists, also below the edge; counted so that the edge itself
/// falls at `second`. Sizes are below 2^52 (see [`size_limit`]), so that the conversion is exact.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn logarithmic(size: usize, second: usize) -> usize {
    let bits_dropped = f64::MANTISSA_DIGITS - 1 - log2_floor(second);
    let of_edge = ((second * GRANULE) as f64).to_bits() >> bits_dropped;
    ((as_f64(size).to_bits() >> bits_dropped) as usize).wrapping_sub(of_edge as usize - second)
}

/// `size` as a floating-point number: as the low bits of one so large that its last bit counts 1, less that number. The instruction
/// for this keeps half of its target, and so waits for whatever wrote there last: 5 ns a pair of calls.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn as_f64(size: usize) -> f64 {
    const LARGE: f64 = (1_u64 << (f64::MANTISSA_DIGITS - 1)) as f64;
    f64::from_bits(LARGE.to_bits() | size as u64) - LARGE
}

/// As above, by bit scan.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
fn logarithmic(size: usize, second: usize) -> usize {
    let shift = log2_floor(size | second * GRANULE) - log2_floor(second);
    let of_edge = log2_floor(GRANULE) as usize * second;
    (size >> shift) + ((shift as usize) << log2_floor(second)) - of_edge
}

/// Index of the list that holds free blocks of `size` bytes, with `second` lists to a first level.
#[must_use]
#[inline(always)]
pub(crate) fn index_of(size: usize, second: usize) -> usize {
    // By arithmetic, not by a branch: which side of the edge a request falls on cannot be predicted.
    select_unpredictable(size < second * GRANULE, size / GRANULE, logarithmic(size, second))
}

/// Index of the lowest list in which *every* block has at least `size` bytes. `size` is a multiple of 16, and not 0.
///
/// One more than the list of one byte less: a list's least size is then its own, and any other belongs to the next list.
#[must_use]
#[inline(always)]
pub(crate) fn index_to_search(size: usize, second: usize) -> usize {
    select_unpredictable(size <= second * GRANULE, size / GRANULE, logarithmic(size - 1, second).wrapping_add(1))
}

/// The smallest size that no list of a heap with these levels can hold.
#[must_use]
pub(crate) const fn size_limit(first: usize, second: usize) -> usize {
    let log2 = edge_log2(second) as usize + first - 1;
    if log2 >= usize::BITS as usize - 1 { 1 << (usize::BITS - 1) } else { 1 << log2 }
}

#[cfg(test)]
mod tests;
