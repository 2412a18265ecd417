//! A block's header as a value: size, flags, and the seal that shows whether something wrote over it.
//!
//! ```text
//!   in memory:          bit 63 ............... 16 | 15 .. 3 | 2         | 1    | 0
//!                       size (multiple of 16)     | seal    | PREV_FREE | FREE | 1
//!   Header, as read:    the same minus the seal and the 1: those bits are 0 if the header is intact
//! ```
//!
//! The size is one shift away. The header of a remainder or of a merged block is the old header minus or plus another one. Decoding a
//! header lies between one call's store and the next call's load of it, so it is on the longest path through both.
//!
//! The *seal* is a 13-bit number that each heap chooses. Together with bit 0 and the four low bits of the size, which are always 0, a
//! header has 18 known bits. They lie in the bytes that an overrun reaches first on a little-endian machine, and the first byte is odd: a
//! terminating NUL written one byte too far always breaks the seal. Mixing the header's address into the seal was measured and
//! rejected: it costs three instructions per header, and detects nothing that the neighbours' sizes and flags do not.
//!
//! This file is safe code: it never touches memory.

use crate::block_size::GRANULE;
use core::ops::Range;

/// The flag of a free block.
pub(crate) const FREE: u64 = 2;
/// The flag of a block whose predecessor in memory is free: the word in front of this header is the predecessor's size.
pub(crate) const PREV_FREE: u64 = 4;

/// The bit at which the size begins.
const SIZE_SHIFT: u32 = 16;
/// The bits of a [`Header`] that are 0 if its seal is intact: the low bits except the flags, and, on a 32-bit machine, those that no size
/// has.
const SEALED: u64 =
    (((GRANULE as u64) << SIZE_SHIFT) - 1 - FREE - PREV_FREE) | !((usize::MAX as u64) << SIZE_SHIFT | 0xFFFF);

/// Encodes and decodes the headers of one heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealer {
    /// What is added to every [`Header`]: the seal and bit 0.
    key: u64,
}

impl Sealer {
    /// The sealer of a heap that has had no region yet.
    pub(crate) const NONE: Self = Self { key: 0 };

    /// The sealer of the `number`-th heap of the process.
    pub(crate) fn new(number: usize) -> Self {
        /// The odd number nearest to 2^64 divided by the golden ratio: it spreads small numbers over the high bits.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        let seal = (number as u64).wrapping_mul(SPREAD) >> (u64::BITS - SIZE_SHIFT);
        Self { key: (seal & !(FREE | PREV_FREE)) | 1 }
    }

    /// This sealer, or another one if this one would take the number of one of the `lists` for a header. The first block of a list has the list's number
    /// where the header of a block in use may have been.
    pub(crate) fn unlike(self, lists: &Range<usize>) -> Self {
        /// A bit of the seal. A number of a list without it, or with it, is that of no list: there are fewer than this.
        const OTHER: u64 = 1 << 11;
        let is_like = [0, PREV_FREE].into_iter().any(|flags| lists.contains(&((self.key + flags) as usize)));
        if is_like { Self { key: self.key ^ OTHER } } else { self }
    }

    /// The sealer that decodes the header of a free block to its size alone, without the FREE flag.
    pub(crate) fn of_free(self) -> Self {
        Self { key: self.key + FREE }
    }

    /// The number that is added to every header, and mixed into every footer.
    #[inline(always)]
    pub(crate) fn key(self) -> u64 {
        self.key
    }

    /// Decodes the word that was read from memory.
    #[inline(always)]
    pub(crate) fn decode(self, word: u64) -> Header {
        Header(word.wrapping_sub(self.key))
    }

    /// The word that stands for `header` in memory.
    #[inline(always)]
    pub(crate) fn encode(self, header: Header) -> u64 {
        header.0.wrapping_add(self.key)
    }
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Header(u64);

impl Header {
    /// The header of the top, whose size is kept in the heap (see `top.rs`).
    pub(crate) const TOP: Self = Self(FREE);

    /// The header of a block of `size` bytes, a multiple of 16. `flags` is FREE, PREV_FREE, both or 0.
    #[inline(always)]
    pub(crate) fn new(size: usize, flags: u64) -> Self {
        Self(((size as u64) << SIZE_SHIFT) + flags)
    }

    /// The block's size in bytes. Meaningful only if the header is intact.
    #[inline(always)]
    pub(crate) fn size(self) -> usize {
        (self.0 >> SIZE_SHIFT) as usize
    }

    /// Whether the seal is intact.
    #[inline(always)]
    pub(crate) fn is_intact(self) -> bool {
        self.0 & SEALED == 0
    }

    /// Whether the seal is intact and `flag` is clear.
    #[inline(always)]
    pub(crate) fn is_intact_without(self, flag: u64) -> bool {
        self.0 & (SEALED | flag) == 0
    }

    /// Whether the block is free.
    #[inline(always)]
    pub(crate) fn is_free(self) -> bool {
        self.0 & FREE != 0
    }

    /// Whether the block in front of this one is free.
    #[inline(always)]
    pub(crate) fn is_prev_free(self) -> bool {
        self.0 & PREV_FREE != 0
    }

    /// The same header with `flag`, which is clear, set.
    #[inline(always)]
    pub(crate) fn with(self, flag: u64) -> Self {
        debug_assert!(self.0 & flag == 0);
        Self(self.0.wrapping_add(flag))
    }

    /// The same header with `flag`, which is set, clear.
    #[inline(always)]
    pub(crate) fn without(self, flag: u64) -> Self {
        debug_assert!(self.0 & flag == flag);
        Self(self.0.wrapping_sub(flag))
    }

    /// The same header with its size increased by `bytes`.
    #[inline(always)]
    pub(crate) fn longer(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add((bytes as u64) << SIZE_SHIFT))
    }

    /// The sum of this header, of a used block, and `next`, of the free block behind it: the sizes added, the flags of both.
    #[inline(always)]
    pub(crate) fn joined(self, next: Self) -> Self {
        debug_assert!(self.0 & FREE == 0 && next.0 & (FREE | PREV_FREE) == FREE);
        Self(self.0.wrapping_add(next.0))
    }

    /// The header of a used block of `size` bytes at the same place: keeps PREV_FREE.
    #[inline(always)]
    pub(crate) fn used(self, size: usize) -> Self {
        Self::new(size, self.0 & PREV_FREE)
    }
}

#[cfg(test)]
mod tests;
