//! What can be wrong, and with which block.
//!
//! Every error leaves the heap as it was. Addresses are plain numbers: an error may outlive the memory it speaks of.

use core::fmt;

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The region does not start at a multiple of 16, or its length is not one.
    RegionMisaligned {
        /// Start of the region.
        address: usize,
        /// Length of the region.
        bytes: usize,
    },
    /// The region cannot hold one block.
    RegionTooSmall {
        /// Length of the region, or of the growth.
        bytes: usize,
        /// The least that is accepted.
        least: usize,
    },
    /// The region holds more than the heap's first level can name.
    RegionTooLarge {
        /// Length of the region.
        bytes: usize,
        /// The longest that is accepted.
        most: usize,
    },
    /// The region shares bytes with one that the heap already has.
    RegionOverlaps {
        /// Start of the refused region.
        address: usize,
        /// Start of the region it overlaps.
        other: usize,
    },
    /// The heap's table of regions is full.
    TooManyRegions {
        /// How many the heap's type has room for.
        most: usize,
    },
    /// The heap has no region that starts there.
    NoSuchRegion {
        /// The address given.
        address: usize,
    },
    /// The region still has a block in use.
    RegionInUse {
        /// The first such block.
        block: usize,
        /// Its usable size.
        bytes: usize,
    },
    /// A request for no bytes.
    ZeroSize,
    /// The alignment is not a power of two.
    BadAlignment {
        /// The alignment given.
        align: usize,
    },
    /// The request is larger than any block this heap could ever hold.
    TooLarge {
        /// Bytes asked for.
        bytes: usize,
        /// The largest request that could succeed in some region.
        most: usize,
    },
    /// No free block is large enough.
    Exhausted {
        /// Bytes asked for.
        bytes: usize,
        /// Alignment asked for.
        align: usize,
    },
    /// The address lies in no region of this heap.
    Foreign {
        /// The address given.
        address: usize,
    },
    /// The address lies inside a block in use, but is not its start.
    Interior {
        /// The address given.
        address: usize,
        /// The block it lies in.
        block: usize,
        /// That block's usable size.
        bytes: usize,
    },
    /// The address lies in memory that is free: the block was freed before, or never allocated.
    DoubleFree {
        /// The address given.
        address: usize,
        /// Start of the free block around it.
        free_block: usize,
        /// That free block's usable size.
        bytes: usize,
    },
    /// Something wrote past the end of a block.
    Overrun {
        /// The block that was written past.
        block: usize,
        /// Its usable size.
        bytes: usize,
    },
    /// A block's header or links were overwritten, and no block before it can be blamed.
    Damaged {
        /// The block whose bookkeeping is broken.
        block: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RegionMisaligned { address, bytes } => {
                write!(out, "region at {address:#x} of {bytes} bytes: start and length must be multiples of 16")
            }
            Self::RegionTooSmall { bytes, least } => {
                write!(out, "region of {bytes} bytes is too small: give at least {least}, in steps of 16")
            }
            Self::RegionTooLarge { bytes, most } => {
                write!(out, "region of {bytes} bytes: this heap's first level ends at {most}; split it or raise FIRST")
            }
            Self::RegionOverlaps { address, other } => {
                write!(out, "region at {address:#x} overlaps the region at {other:#x}, which this heap already has")
            }
            Self::TooManyRegions { most } => write!(out, "the heap has its {most} regions: raise REGIONS in its type"),
            Self::NoSuchRegion { address } => write!(out, "no region of this heap starts at {address:#x}"),
            Self::RegionInUse { block, bytes } => {
                write!(out, "the region still holds block {block:#x} of {bytes} bytes: free it first")
            }
            Self::ZeroSize => write!(out, "a block of 0 bytes was asked for: ask for at least 1"),
            Self::BadAlignment { align } => write!(out, "alignment {align} is not a power of two"),
            Self::TooLarge { bytes, most } => {
                write!(out, "{bytes} bytes were asked for: no block of this heap can exceed {most}")
            }
            Self::Exhausted { bytes, align } => {
                write!(out, "no free block holds {bytes} bytes aligned to {align}: free some or add a region")
            }
            Self::Foreign { address } => {
                write!(out, "{address:#x} is in no region of this heap: it came from elsewhere")
            }
            Self::Interior { address, block, bytes } => {
                write!(out, "{address:#x} is inside block {block:#x} of {bytes} bytes: pass the block's start")
            }
            Self::DoubleFree { address, free_block, bytes } => {
                write!(out, "double free of {address:#x}: it lies in the free block {free_block:#x} of {bytes} bytes")
            }
            Self::Overrun { block, bytes } => {
                write!(out, "block {block:#x} was written past its end ({bytes} usable bytes)")
            }
            Self::Damaged { block } => {
                write!(out, "the bookkeeping of block {block:#x} was overwritten: look for a write after free")
            }
        }
    }
}

impl core::error::Error for Error {}
