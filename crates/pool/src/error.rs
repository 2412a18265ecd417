//! Why a call was refused, and which block is the reason.
//!
//! Addresses in an error are plain numbers, because an error can outlive the memory that it is about.

use core::fmt;

/// Why a call was refused. Whatever the error, the pool is unchanged.
///
/// Addresses, sizes and lengths are in bytes.
///
/// ```
/// use freestone_pool::{Error, Shape};
///
/// assert_eq!(Shape::aligned(64, 16, 3), Err(Error::BadAlignment { align: 3 }));
/// assert_eq!(Error::BadAlignment { align: 3 }.to_string(), "alignment 3 is not a power of two");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The shape has blocks of 0 bytes.
    ZeroBlockSize,
    /// The shape has 0 blocks.
    ZeroCount,
    /// The alignment is not a power of two.
    BadAlignment {
        /// The alignment given.
        align: usize,
    },
    /// The blocks need more memory than an address space has, or are more than a shared pool can number.
    TooLarge {
        /// Bytes of a block.
        block_bytes: usize,
        /// The number of blocks requested.
        count: usize,
    },
    /// The region does not start at a multiple of the shape's alignment.
    RegionMisaligned {
        /// Start of the region.
        address: usize,
        /// The alignment that it must have.
        align: usize,
    },
    /// The region is shorter than the shape needs.
    RegionTooSmall {
        /// Length of the region.
        bytes: usize,
        /// The least length that is accepted.
        least: usize,
    },
    /// Every block is in use (or, in a shared pool, in a thread's magazine), and there is no fallback or it has no memory either.
    Exhausted {
        /// The number of blocks of the pool.
        count: usize,
        /// Bytes of each.
        block_bytes: usize,
    },
    /// The address is not that of a block of this pool; perhaps it is of another pool.
    Foreign {
        /// The address given.
        address: usize,
    },
    /// The address lies inside a block, but is not its start.
    Interior {
        /// The address given.
        address: usize,
        /// The block it lies in.
        block: usize,
        /// That block's size.
        bytes: usize,
    },
    /// The block is free already.
    DoubleFree {
        /// The block.
        block: usize,
        /// Its size.
        bytes: usize,
    },
    /// The block has never been allocated.
    NeverAllocated {
        /// The block.
        block: usize,
        /// Its size.
        bytes: usize,
    },
    /// Blocks are still in use, so the pool cannot be closed.
    InUse {
        /// The first such block.
        block: usize,
        /// The number of blocks in use.
        n_blocks: usize,
    },
    /// The bookkeeping behind the blocks was overwritten.
    Damaged {
        /// The first block that the damaged bookkeeping is about.
        block: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroBlockSize => write!(out, "a pool of blocks of 0 bytes was requested: request at least 1"),
            Self::ZeroCount => write!(out, "a pool of 0 blocks was requested: request at least 1"),
            Self::BadAlignment { align } => write!(out, "alignment {align} is not a power of two"),
            Self::TooLarge { block_bytes, count } => {
                write!(out, "{count} blocks of {block_bytes} bytes are more than a pool can hold: request fewer")
            }
            Self::RegionMisaligned { address: 0, .. } => out.write_str("the region is null: pass memory"),
            Self::RegionMisaligned { address, align } => {
                write!(out, "region at {address:#x}: it must start at a multiple of {align}")
            }
            Self::RegionTooSmall { bytes, least } => {
                write!(out, "region of {bytes} bytes is too small: this shape needs {least}")
            }
            Self::Exhausted { count, block_bytes } => {
                write!(out, "all {count} blocks of {block_bytes} bytes are in use: free one, or make a larger pool")
            }
            Self::Foreign { address } => {
                write!(out, "{address:#x} is no block of this pool: it came from elsewhere")
            }
            Self::Interior { address, block, bytes } => {
                write!(out, "{address:#x} is inside block {block:#x} of {bytes} bytes: pass the block's start")
            }
            Self::DoubleFree { block, bytes } => {
                write!(out, "double free of {block:#x}: the block of {bytes} bytes is free already")
            }
            Self::NeverAllocated { block, bytes } => {
                write!(out, "free of {block:#x}: the block of {bytes} bytes was never handed out")
            }
            Self::InUse { block, n_blocks } => {
                write!(out, "{n_blocks} blocks are still in use, the first at {block:#x}: free them first")
            }
            Self::Damaged { block } => {
                write!(
                    out,
                    "the bookkeeping of block {block:#x} was overwritten: look for a write past the pool's last block"
                )
            }
        }
    }
}

impl core::error::Error for Error {}
