//! The shape of a pool: how large its blocks are, how many, how aligned, and so how much memory it needs.
//!
//! ```text
//! | block 0 | block 1 | ... | block count-1 | bookkeeping |        region_bytes() or shared_region_bytes()
//! |<------->|
//!  spacing: the next power of two, at least 8, so that index = offset >> spacing_log2
//! ```
//!
//! Invariants: `block_bytes >= 1`, `count >= 1`, `align` is a power of two of 8 or more, `spacing` is a power of two of `align` or more,
//! and the whole region is at most `isize::MAX` bytes.

use crate::error::Error;
use crate::groups;
use crate::links::HEADS_BYTES;
use core::alloc::Layout;
use freestone_base::bits;
use freestone_base::sync::AtomicU32;

/// The least distance between two blocks: room for a link, and alignment for the bookkeeping behind the blocks.
const LEAST_SPACING: usize = 8;

/// Alignment of blocks when nothing else is asked for: what `malloc` gives.
const USUAL_ALIGN: usize = 16;

/// How large, how many, how aligned. All of it can be computed at compile time:
///
/// ```
/// use freestone_pool::Shape;
/// const SHAPE: Shape = match Shape::new(100, 32) {
///     Ok(shape) => shape,
///     Err(_) => panic!("no such pool"),
/// };
/// assert_eq!(SHAPE.spacing(), 128);
/// assert_eq!(SHAPE.region_bytes(), 32 * 128 + 16);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    block_bytes: usize,
    count: usize,
    align: usize,
    spacing_log2: u32,
}

impl Shape {
    /// `count` blocks of `block_bytes` bytes, aligned to 16, or to 8 when they are no larger than that.
    ///
    /// # Errors
    /// A size or a count of 0; more bytes than an address space has.
    pub const fn new(block_bytes: usize, count: usize) -> Result<Self, Error> {
        Self::aligned(block_bytes, count, if block_bytes <= LEAST_SPACING { LEAST_SPACING } else { USUAL_ALIGN })
    }

    /// `count` blocks of `block_bytes` bytes, aligned to `align` (to 8, if that is less).
    ///
    /// # Errors
    /// As [`Shape::new`]; an alignment that is not a power of two.
    pub const fn aligned(block_bytes: usize, count: usize, align: usize) -> Result<Self, Error> {
        if block_bytes == 0 {
            return Err(Error::ZeroBlockSize);
        }
        if count == 0 {
            return Err(Error::ZeroCount);
        }
        if !align.is_power_of_two() {
            return Err(Error::BadAlignment { align });
        }
        let too_large = Err(Error::TooLarge { block_bytes, count });
        let align = if align < LEAST_SPACING { LEAST_SPACING } else { align };
        let Some(spacing) = (if block_bytes < align { align } else { block_bytes }).checked_next_power_of_two() else {
            return too_large;
        };
        // The larger of the two kinds of bookkeeping is a link a block, but for the group that a few blocks have, and the lists' heads.
        let Some(each) = spacing.checked_add(size_of::<AtomicU32>()) else { return too_large };
        match each.checked_mul(count) {
            Some(bytes) if bytes <= isize::MAX as usize - groups::bytes(1) - HEADS_BYTES => {
                Ok(Self { block_bytes, count, align, spacing_log2: bits::log2_floor(spacing) })
            }
            _ => too_large,
        }
    }

    /// `count` blocks that each hold a `T`.
    ///
    /// # Errors
    /// As [`Shape::new`]: a type without bytes needs no pool.
    pub const fn of<T>(count: usize) -> Result<Self, Error> {
        Self::aligned(size_of::<T>(), count, align_of::<T>())
    }

    /// Bytes of a block that may be used.
    #[must_use]
    pub const fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// How many blocks.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// What every block's address, and the region's, is a multiple of.
    #[must_use]
    pub const fn align(&self) -> usize {
        self.align
    }

    /// Bytes from one block to the next.
    #[must_use]
    pub const fn spacing(&self) -> usize {
        1 << self.spacing_log2
    }

    /// Bytes of memory a [`crate::FixedPool`] of this shape needs: the blocks, and 16 for every 64 of them.
    #[must_use]
    pub const fn region_bytes(&self) -> usize {
        self.blocks_bytes() + groups::bytes(self.count)
    }

    /// Bytes of memory a [`crate::SharedPool`] of this shape needs: the blocks, a link of 4 bytes for each, and 1152 for the lists' heads.
    #[must_use]
    pub const fn shared_region_bytes(&self) -> usize {
        self.blocks_bytes() + self.count * size_of::<AtomicU32>() + HEADS_BYTES
    }

    /// Size and alignment of a block, as a heap wants to hear it.
    pub(crate) const fn layout(&self) -> Layout {
        match Layout::from_size_align(self.block_bytes, self.align) {
            Ok(layout) => layout,
            // Cannot be: rounded up to its alignment a block is still smaller than the region.
            Err(_) => Layout::new::<u8>(),
        }
    }

    pub(crate) const fn spacing_log2(&self) -> u32 {
        self.spacing_log2
    }

    /// Bytes of all blocks: where the bookkeeping begins.
    pub(crate) const fn blocks_bytes(&self) -> usize {
        self.count << self.spacing_log2
    }
}

#[cfg(test)]
mod tests;
