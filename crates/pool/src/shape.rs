//! The shape of a pool: the size, number and alignment of its blocks, and how much memory that takes.
//!
//! ```text
//! | block 0 | block 1 | ... | block count-1 | bookkeeping |        region_bytes() or shared_region_bytes()
//! |<------->|
//!  spacing: the next power of two, at least 8, so that index = offset >> spacing_log2
//! ```
//!
//! Invariants: `block_bytes >= 1`, `count >= 1`; `align` is a power of two, 8 or more; `spacing` is a power of two, `align` or more;
//! the whole region is at most `isize::MAX` bytes. Safe code.

use crate::error::Error;
use crate::groups;
#[cfg(target_has_atomic = "64")]
use crate::links::HEADS_BYTES;
use core::alloc::Layout;
use freestone_base::bits;
use freestone_base::sync::AtomicU32;

/// Without shared pools there are no heads.
#[cfg(not(target_has_atomic = "64"))]
const HEADS_BYTES: usize = 0;

/// The least distance between two blocks, in bytes: it aligns the bookkeeping behind the blocks.
const LEAST_SPACING: usize = 8;

/// The default alignment of blocks: that of `malloc`.
const USUAL_ALIGN: usize = 16;

/// The size, number and alignment of a pool's blocks. All of it can be computed at compile time:
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
    /// `count` blocks of `block_bytes` bytes, aligned to 16, or to 8 if they have no more than 8 bytes.
    ///
    /// ```
    /// use freestone_pool::{Error, Shape};
    ///
    /// let shape = Shape::new(100, 32)?;
    /// assert_eq!((shape.block_bytes(), shape.count(), shape.align()), (100, 32, 16));
    /// assert_eq!(Shape::new(0, 32), Err(Error::ZeroBlockSize));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ZeroBlockSize`], [`Error::ZeroCount`]; [`Error::TooLarge`] if they need more bytes than an address space has.
    pub const fn new(block_bytes: usize, count: usize) -> Result<Self, Error> {
        Self::aligned(block_bytes, count, if block_bytes <= LEAST_SPACING { LEAST_SPACING } else { USUAL_ALIGN })
    }

    /// `count` blocks of `block_bytes` bytes, aligned to `align`, or to 8 if `align` is less.
    ///
    /// ```
    /// let shape = freestone_pool::Shape::aligned(100, 32, 64)?;
    /// assert_eq!((shape.align(), shape.spacing()), (64, 128));
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Shape::new`]; [`Error::BadAlignment`] if `align` is not a power of two.
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
        // Of the two kinds of bookkeeping the larger is a link per block, plus the one group that few blocks need, and the heads of the lists.
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
    /// ```
    /// let shape = freestone_pool::Shape::of::<[u64; 5]>(32)?;
    /// assert_eq!(shape.block_bytes(), 40);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Shape::new`]; [`Error::ZeroBlockSize`] for a `T` of size 0, which needs no pool.
    pub const fn of<T>(count: usize) -> Result<Self, Error> {
        Self::aligned(size_of::<T>(), count, align_of::<T>())
    }

    /// The number of bytes of a block that may be used.
    ///
    /// ```
    /// assert_eq!(freestone_pool::Shape::new(100, 32)?.block_bytes(), 100);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    pub const fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// The number of blocks.
    ///
    /// ```
    /// assert_eq!(freestone_pool::Shape::new(100, 32)?.count(), 32);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The alignment, in bytes, of every block and of the region.
    ///
    /// ```
    /// assert_eq!(freestone_pool::Shape::new(100, 32)?.align(), 16);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    pub const fn align(&self) -> usize {
        self.align
    }

    /// The distance in bytes from one block to the next: a power of two.
    ///
    /// ```
    /// assert_eq!(freestone_pool::Shape::new(100, 32)?.spacing(), 128);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    pub const fn spacing(&self) -> usize {
        1 << self.spacing_log2
    }

    /// The bytes of memory that a [`FixedPool`](crate::FixedPool) of this shape needs: the blocks, and 16 bytes for every 64 of them.
    ///
    /// ```
    /// assert_eq!(freestone_pool::Shape::new(100, 128)?.region_bytes(), 128 * 128 + 2 * 16);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    pub const fn region_bytes(&self) -> usize {
        self.blocks_bytes() + groups::bytes(self.count)
    }

    /// The bytes of memory that a [`SharedPool`](crate::SharedPool) of this shape needs: the blocks, a link of 4 bytes for each, and 1152 bytes
    /// for the heads of the lists.
    ///
    /// ```
    /// assert_eq!(freestone_pool::Shape::new(100, 32)?.shared_region_bytes(), 32 * 128 + 32 * 4 + 1152);
    /// # Ok::<(), freestone_pool::Error>(())
    /// ```
    #[must_use]
    #[cfg(target_has_atomic = "64")]
    pub const fn shared_region_bytes(&self) -> usize {
        self.blocks_bytes() + self.count * size_of::<AtomicU32>() + HEADS_BYTES
    }

    /// Size and alignment of a block, for the fallback.
    pub(crate) const fn layout(&self) -> Layout {
        match Layout::from_size_align(self.block_bytes, self.align) {
            Ok(layout) => layout,
            // Unreachable: rounded up to its alignment a block is still smaller than the region.
            Err(_) => Layout::new::<u8>(),
        }
    }

    /// The error of a pool that has no block left.
    pub(crate) const fn exhausted(&self) -> Error {
        Error::Exhausted { count: self.count, block_bytes: self.block_bytes }
    }

    pub(crate) const fn spacing_log2(&self) -> u32 {
        self.spacing_log2
    }

    /// The bytes of all blocks: the offset at which the bookkeeping begins.
    pub(crate) const fn blocks_bytes(&self) -> usize {
        self.count << self.spacing_log2
    }
}

#[cfg(test)]
mod tests;
