//! What a program asks for, and what it says of a block that it frees.

use crate::span::trailer::Family;

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

/// What a program says of a block that it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nothing: not even which function was called is known.
    Nothing,
    /// It was allocated by functions of this family.
    From(Family),
    /// By C's, for a number of bytes.
    Size(usize),
    /// By C's, for a number of bytes and an alignment.
    SizeAndAlign(usize, usize),
    /// By Rust's, for a layout of this size and alignment.
    Layout(usize, usize),
}

impl Claim {
    /// The family, if it is claimed.
    pub(crate) fn family(self) -> Option<Family> {
        match self {
            Self::Nothing => None,
            Self::From(family) => Some(family),
            Self::Size(_) | Self::SizeAndAlign(..) => Some(Family::C),
            Self::Layout(..) => Some(Family::Rust),
        }
    }

    /// The size, if it is claimed.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Self::Nothing | Self::From(_) => None,
            Self::Size(size) | Self::SizeAndAlign(size, _) | Self::Layout(size, _) => Some(size),
        }
    }

    /// The alignment, if it is claimed.
    pub(crate) fn align(self) -> Option<usize> {
        match self {
            Self::Nothing | Self::From(_) | Self::Size(_) => None,
            Self::SizeAndAlign(_, align) | Self::Layout(_, align) => Some(align),
        }
    }
}
