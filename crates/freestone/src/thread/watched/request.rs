//! What a program asks for, and what it says of a block that it frees.

use crate::span::family::Family;

/// What a program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Bytes that the program may use.
    pub(crate) size: usize,
    /// Bytes that the block should have room for, `size` or more.
    pub(crate) room: usize,
    /// A power of two.
    pub(crate) align: usize,
    /// Which functions free the block.
    pub(crate) family: Family,
}

impl Request {
    /// `size` bytes aligned to `align`, a power of two.
    #[inline]
    pub(crate) fn new(size: usize, align: usize, family: Family) -> Self {
        Self { size, room: size, align, family }
    }
}

/// What a program says of a block that it passes. Two words, so that it is passed in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The bytes that were asked for, or [`UNSAID`].
    size: usize,
    /// The family, or 0; and, shifted by eight, the logarithm of the alignment that was asked for, and one more, or 0.
    kind: u32,
}

/// No size: more than any block has.
const UNSAID: usize = usize::MAX;

impl Claim {
    /// Nothing: not even which function was called is known.
    pub const NOTHING: Self = Self { size: UNSAID, kind: 0 };

    /// The block was allocated by functions of a family.
    #[inline(always)]
    #[must_use]
    pub const fn of(family: Family) -> Self {
        Self { size: UNSAID, kind: family as u32 }
    }

    /// It was allocated for so many bytes, too.
    #[inline(always)]
    #[must_use]
    pub const fn sized(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// It was allocated with an alignment, too, a power of two.
    #[inline(always)]
    #[must_use]
    pub const fn aligned(self, align: usize) -> Self {
        Self { kind: self.kind | (align.trailing_zeros() + 1) << 8, ..self }
    }

    /// By Rust's allocator, for a layout of this size and alignment.
    #[inline(always)]
    pub(crate) const fn layout(size: usize, align: usize) -> Self {
        Self::of(Family::Rust).sized(size).aligned(align)
    }

    /// With a family, where none is claimed.
    #[inline]
    pub(crate) fn with_family(self, family: Family) -> Self {
        Self { kind: self.kind | family as u32, ..self }
    }

    /// The family, as trailers have it; 0 if none is claimed.
    #[inline(always)]
    pub(crate) fn family(self) -> u32 {
        self.kind & 0xff
    }

    /// The size, if it is claimed.
    #[inline(always)]
    pub(crate) fn size(self) -> Option<usize> {
        if self.size == UNSAID { None } else { Some(self.size) }
    }

    /// The logarithm of the alignment, if it is claimed.
    #[inline(always)]
    pub(crate) fn align_log2(self) -> Option<u32> {
        (self.kind >> 8).checked_sub(1)
    }
}
