//! Why a call was refused, and which block is the reason.
//!
//! Addresses in an error are plain numbers, because an error can outlive the memory that it is about.

use core::fmt;

/// Why a call was refused. Whatever the error, the heap is unchanged.
///
/// Addresses and lengths are in bytes.
///
/// ```
/// # #[repr(align(16))] struct Memory([core::mem::MaybeUninit<u8>; 4096]);
/// # let mut memory = Memory([core::mem::MaybeUninit::uninit(); 4096]);
/// # let mut heap = freestone_tlsf::Tlsf::new();
/// # heap.add_region(&mut memory.0)?;
/// let refused = heap.allocate(100_000, 16).unwrap_err();
/// assert_eq!(refused.to_string(), "no free block holds 100000 bytes aligned to 16: free blocks or add a region");
/// # Ok::<(), freestone_tlsf::Error>(())
/// ```
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
        /// The least length that is accepted.
        least: usize,
    },
    /// The region is longer than the lists of this type of heap can hold: the type's parameter `FIRST` says how much that is.
    RegionTooLarge {
        /// Length of the region.
        bytes: usize,
        /// The greatest length that is accepted.
        most: usize,
    },
    /// The region begins at an address that the heap cannot tell from the number of a list.
    RegionTooLow {
        /// Start of the region.
        address: usize,
        /// The lowest start that is accepted ([`LEAST_REGION_ADDRESS`](crate::LEAST_REGION_ADDRESS)).
        least: usize,
    },
    /// The region shares bytes with one that the heap already has.
    RegionOverlaps {
        /// Start of the refused region.
        address: usize,
        /// Start of what it overlaps: a region, or in C the heap's control structure.
        other: usize,
    },
    /// The heap has as many regions as its type allows: the parameter `REGIONS`.
    TooManyRegions {
        /// The number of regions that the heap's type has room for.
        most: usize,
    },
    /// No region of the heap starts at the address.
    NoSuchRegion {
        /// The address given.
        address: usize,
    },
    /// A block in the region is still in use.
    RegionInUse {
        /// The first such block.
        block: usize,
        /// Its usable size.
        bytes: usize,
    },
    /// The request is for 0 bytes.
    ZeroSize,
    /// The alignment is not a power of two.
    BadAlignment {
        /// The alignment given.
        align: usize,
    },
    /// The request is larger than any block that this type of heap can hold: the type's parameter `FIRST` says how much that is.
    TooLarge {
        /// Bytes requested.
        bytes: usize,
        /// The largest request that a heap of this type can serve ([`Tlsf::MOST_BYTES`](crate::Tlsf::MOST_BYTES)).
        most: usize,
    },
    /// No free block is large enough.
    Exhausted {
        /// Bytes requested.
        bytes: usize,
        /// Alignment requested.
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
    /// The address lies in free memory: the block was freed before, or never allocated.
    DoubleFree {
        /// The address given.
        address: usize,
        /// Start of the free block that it lies in.
        free_block: usize,
        /// That free block's usable size.
        bytes: usize,
    },
    /// The program wrote past the end of a block.
    Overrun {
        /// The block that was written past.
        block: usize,
        /// Its usable size.
        bytes: usize,
    },
    /// A block's header or links were overwritten, and no used block in front of it is the likely cause.
    Damaged {
        /// The block whose bookkeeping is broken.
        block: usize,
    },
}

impl fmt::Display for Error {
    // Long because: every error has its message.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RegionMisaligned { address: 0, .. } => out.write_str("the region is null: pass memory"),
            Self::RegionMisaligned { address, bytes } => {
                write!(out, "region at {address:#x} of {bytes} bytes: start and length must be multiples of 16")
            }
            Self::RegionTooSmall { bytes, least } => {
                write!(out, "region of {bytes} bytes is too small: give at least {least}, in steps of 16")
            }
            Self::RegionTooLarge { bytes, most } => {
                write!(out, "region of {bytes} bytes: the lists of this heap end at {most}; split the region")
            }
            Self::RegionTooLow { address, least } => {
                write!(out, "region at {address:#x} is too low: give memory that begins at {least:#x} or above")
            }
            Self::RegionOverlaps { address, other } => {
                write!(
                    out,
                    "region at {address:#x} overlaps what this heap has at {other:#x}: give each region memory of its own"
                )
            }
            Self::TooManyRegions { most } => {
                write!(out, "this heap already has {most} regions, its maximum: remove one, or grow one")
            }
            Self::NoSuchRegion { address } => write!(
                out,
                "no region of this heap starts at {address:#x}: pass the start of the region as it was added"
            ),
            Self::RegionInUse { block, bytes } => {
                write!(out, "block {block:#x} of {bytes} bytes in the region is still in use: free it first")
            }
            Self::ZeroSize => write!(out, "a block of 0 bytes was requested: request at least 1"),
            Self::BadAlignment { align } => write!(out, "alignment {align} is not a power of two: use 1, 2, 4, 8, ..."),
            Self::TooLarge { bytes, most } => {
                write!(out, "{bytes} bytes were requested: no block of this type of heap can exceed {most}")
            }
            Self::Exhausted { bytes, align } => {
                write!(out, "no free block holds {bytes} bytes aligned to {align}: free blocks or add a region")
            }
            Self::Foreign { address } => {
                write!(out, "{address:#x} is in no region of this heap: free it where it was allocated")
            }
            Self::Interior { address, block, bytes } => {
                write!(out, "{address:#x} is inside block {block:#x} of {bytes} bytes: pass the start of the block")
            }
            Self::DoubleFree { address, free_block, bytes } => {
                write!(out, "double free of {address:#x}: it is in the free block {free_block:#x} of {bytes} bytes")
            }
            Self::Overrun { block, bytes } => {
                write!(out, "the program wrote past the end of block {block:#x}, which has {bytes} usable bytes")
            }
            Self::Damaged { block } => {
                write!(out, "the header or links of block {block:#x} were overwritten: look for a write after free")
            }
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests;
