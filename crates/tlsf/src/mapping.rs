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
//! Cost: eight instructions or nine, no branch: sizes below the first edge are treated as if they lay just above it, where
//! the same shift applies. Safe code; nothing can fail.
//!
//! Source: M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004, section 3.

use freestone_base::bits::log2_floor;

/// The unit of sizes and the alignment of every block's payload, in bytes.
pub const GRANULE: usize = 16;

/// log2 of the edge between first level 0 (linear) and the powers of two: `SECOND` granules.
const fn edge_log2(second: usize) -> u32 {
    log2_floor(second * GRANULE)
}

/// Number of the list in which sizes with these leading bits lie: the first level from how far `size` is from the left end of the
/// word, the second from the bits behind its first one. Sizes below the edge count as if they had the edge's bit.
#[inline(always)]
const fn index_with(size: usize, leading: u32, second: usize) -> usize {
    let last_bit = usize::BITS - 1;
    let first = ((last_bit - edge_log2(second)) as usize).wrapping_sub(leading as usize);
    (first << log2_floor(second)) + ((size << leading) >> (last_bit - log2_floor(second)))
}

/// Index of the list that holds free blocks of `size` bytes, with `second` lists to a first level.
#[must_use]
#[inline(always)]
pub(crate) const fn index_of(size: usize, second: usize) -> usize {
    index_with(size, (size | (second * GRANULE)).leading_zeros(), second)
}

/// Index of the lowest list in which *every* block has at least `size` bytes. `size` must not be 0.
///
/// One more than the list of the next smaller size: a list's least size is then its own, and any other belongs to the next list.
#[must_use]
#[inline(always)]
pub(crate) const fn index_to_search(size: usize, second: usize) -> usize {
    index_with(size - 1, (size | (second * GRANULE)).leading_zeros(), second) + 1
}

/// The smallest size that no list of a heap with these levels can hold.
#[must_use]
pub(crate) const fn size_limit(first: usize, second: usize) -> usize {
    let log2 = edge_log2(second) as usize + first - 1;
    if log2 >= usize::BITS as usize - 1 { 1 << (usize::BITS - 1) } else { 1 << log2 }
}

#[cfg(test)]
mod tests;
