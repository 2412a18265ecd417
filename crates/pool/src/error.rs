//! What can be wrong, and with which block.
//!
//! Every error leaves the pool as it was. Addresses are plain numbers: an error may outlive the memory it speaks of.

use core::fmt;

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A pool of blocks of no bytes.
    ZeroBlockSize,
    /// A pool of no blocks.
    ZeroCount,
    /// The alignment is not a power of two.
    BadAlignment {
        /// The alignment given.
        align: usize,
    },
    /// The blocks together are more than an address space holds, or more than a shared pool can number.
    TooLarge {
        /// Bytes of a block.
        block_bytes: usize,
        /// How many were asked for.
        count: usize,
    },
    /// The region does not start at a multiple of the shape's alignment.
    RegionMisaligned {
        /// Start of the region.
        address: usize,
        /// What it must be a multiple of.
        align: usize,
    },
    /// The region is shorter than the shape says.
    RegionTooSmall {
        /// Length of the region.
        bytes: usize,
        /// The least that is accepted.
        least: usize,
    },
    /// Every block is in use (or, in a shared pool, kept by some thread's magazine), and there is no fallback or it has no
    /// memory either.
    Exhausted {
        /// Blocks of the pool.
        count: usize,
        /// Bytes of each.
        block_bytes: usize,
    },
    /// The address is no block's of this pool: it came from elsewhere, perhaps from another pool.
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
    /// The block was never handed out.
    NeverAllocated {
        /// The block.
        block: usize,
        /// Its size.
        bytes: usize,
    },
    /// The pool cannot end while blocks are in use.
    InUse {
        /// The first such block.
        block: usize,
        /// How many there are.
        n_blocks: usize,
    },
    /// The bookkeeping behind the blocks was overwritten.
    Damaged {
        /// The first block it speaks of.
        block: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroBlockSize => write!(out, "a pool of blocks of 0 bytes was asked for: ask for at least 1"),
            Self::ZeroCount => write!(out, "a pool of 0 blocks was asked for: ask for at least 1"),
            Self::BadAlignment { align } => write!(out, "alignment {align} is not a power of two"),
            Self::TooLarge { block_bytes, count } => {
                write!(out, "{count} blocks of {block_bytes} bytes are more than a pool can hold: ask for fewer")
            }
            Self::RegionMisaligned { address, align } => {
                write!(out, "region at {address:#x}: it must start at a multiple of {align}")
            }
            Self::RegionTooSmall { bytes, least } => {
                write!(out, "region of {bytes} bytes is too small: this shape needs {least}")
            }
            Self::Exhausted { count, block_bytes } => {
                write!(
                    out,
                    "all {count} blocks of {block_bytes} bytes are in use: free one, or give the pool a fallback"
                )
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
