//! Which list a block belongs to, by its size: pure arithmetic.
//!
//! ```text
//! SECOND = 32                                 first level 0   sizes  32 ..  64   32 lists, of which 2 are in use
//! index = (FIRST_LEVEL + first) * 32 + second first level 1   sizes  64 .. 128   32 lists, of which 4 are in use   ...
//!                                             first level 4   sizes 512 .. 1024  32 lists, 16 bytes apart
//!                                             first level 5   sizes 1 Ki .. 2 Ki 32 lists, 32 bytes apart   ...
//! ```
//!
//! One formula serves all sizes, down to the smallest block. Below 512 bytes lists are closer together than sizes are, and some stay
//! empty; in return the code does not have to distinguish small sizes from large ones.
//!
//! Invariants: [`index_of`] is monotonic; every size in the list that [`index_to_search`] returns, and in every list above it, is
//! at least the requested size. The tests compare both with the definition for every size up to 2 MiB and around every power of two
//! above.
//! Cost: six instructions, no branch. Safe code; nothing can fail.
//!
//! On x86-64 the logarithm comes from a conversion to floating point: the exponent and the leading bits of the mantissa, read as one
//! number, are first and second level. The bit scan of baseline x86-64 (`bsr`) is microcode on AMD's processors: 1.8 ns
//! each on a Zen 3, where the conversion takes 0.3, and an allocation and a deallocation need three. Elsewhere a scan is one
//! instruction.
//!
//! Source: M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004, section 3.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::block_size::GRANULE;
use crate::block_size::LEAST_BLOCK_BYTES;
use freestone_base::bits::log2_floor;

/// The index of a list of free blocks: `(FIRST_LEVEL + first) * SECOND + second`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct ListIndex(usize);

impl ListIndex {
    /// The list with this number.
    #[inline(always)]
    pub(crate) const fn of_number(number: usize) -> Self {
        Self(number)
    }

    /// The list of a second-level step, of the first level that is stored as `level`.
    #[inline(always)]
    pub(crate) const fn of_level(level: usize, step: usize, second: usize) -> Self {
        Self((level << log2_floor(second)) + step)
    }

    /// Its number.
    #[inline(always)]
    pub(crate) const fn number(self) -> usize {
        self.0
    }

    /// Its first level as it is stored: from `FIRST_LEVEL` on. `second` is the number of lists of a first level.
    #[inline(always)]
    pub(crate) const fn level(self, second: usize) -> usize {
        self.0 >> log2_floor(second)
    }

    /// Its second-level step, below `second`.
    #[inline(always)]
    pub(crate) const fn step(self, second: usize) -> usize {
        self.0 & (second - 1)
    }
}

/// How the first level of the smallest block is stored: as the exponent of its size in granules, 2.0. It is a multiple of the number of
/// bits of a word, so that a bit can be shifted by a first level without subtracting it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) const FIRST_LEVEL: usize = 1024;
/// How the first level of the smallest block is stored.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) const FIRST_LEVEL: usize = 0;

/// The greatest number of first levels: a header stores 48 bits of size.
pub(crate) const MOST_LEVELS: usize = 48 - log2_floor(LEAST_BLOCK_BYTES) as usize;

/// Greater than any list's number, whatever the levels of the heap.
pub(crate) const LISTS_END: usize = (FIRST_LEVEL + MOST_LEVELS) * 32;

/// A number, in granules, so large that the last bit of its mantissa stands for one byte.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const LARGE: f64 = ((1_u64 << (f64::MANTISSA_DIGITS - 1)) / GRANULE as u64) as f64;

/// First and second level of a number of granules, as one number. `bytes` are converted by adding them to `more`, the bits of a float so large
/// that the last bit of its mantissa stands for one byte, and subtracting `less` granules. (The instruction that converts an integer
/// keeps half of its target register, and so waits for whatever wrote there last: that takes 5 ns more for an allocation and a
/// deallocation.)
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
fn levels(bytes: usize, more: u64, less: f64, second: usize) -> ListIndex {
    let granules = f64::from_bits(more + bytes as u64) - less;
    ListIndex((granules.to_bits() >> (f64::MANTISSA_DIGITS - 1 - log2_floor(second))) as usize)
}

/// The list that holds free blocks of `size` bytes, a block's size, with `second` lists in a first level.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[must_use]
#[inline(always)]
pub(crate) fn index_of(size: usize, second: usize) -> ListIndex {
    levels(size, LARGE.to_bits(), LARGE, second)
}

/// The lowest list in which *every* block has at least `size` bytes, a block's size, with `second` lists in a first level.
///
/// It is one more than the list of half a byte less than `size`: the smallest size of a list is then searched for in that list, any
/// other in the next.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[must_use]
#[inline(always)]
pub(crate) fn index_to_search(size: usize, second: usize) -> ListIndex {
    const HALF_A_BYTE: f64 = 0.5 / GRANULE as f64;
    ListIndex(levels(size, LARGE.to_bits() - 1, LARGE - HALF_A_BYTE, second).0 + 1)
}

/// The list that holds free blocks of `size` bytes, a block's size, with `second` lists in a first level. By bit scan.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[must_use]
#[inline(always)]
pub(crate) fn index_of(size: usize, second: usize) -> ListIndex {
    let (shift, level) = scan(size, second);
    ListIndex(level.wrapping_add(size >> shift))
}

/// The lowest list in which *every* block has at least `size` bytes, a block's size, with `second` lists in a first level. By bit scan.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[must_use]
#[inline(always)]
pub(crate) fn index_to_search(size: usize, second: usize) -> ListIndex {
    let (shift, level) = scan(size, second);
    ListIndex(level.wrapping_add((size + (1 << shift) - 1) >> shift))
}

/// How many low bits of `size` do not matter, and the number that the remaining bits are added to.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
fn scan(size: usize, second: usize) -> (u32, usize) {
    let log2 = log2_floor(size);
    (
        log2 - log2_floor(second),
        (log2 as usize).wrapping_sub(log2_floor(LEAST_BLOCK_BYTES) as usize + 1).wrapping_mul(second),
    )
}

/// The smallest size, in bytes, that no list of a heap with `first` first levels can hold.
#[must_use]
pub(crate) const fn size_limit(first: usize) -> usize {
    let log2 = log2_floor(LEAST_BLOCK_BYTES) as usize + first;
    if log2 >= usize::BITS as usize - 1 { 1 << (usize::BITS - 1) } else { 1 << log2 }
}

#[cfg(test)]
mod tests;
