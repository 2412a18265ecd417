//! The top: the free end of a heap's first region, which is in no list.
//!
//! ```text
//! | used | free | used | ................ top ................ | sentinel |
//!                      ^ block                                 ^ block + bytes
//! ```
//!
//! Blocks are cut from its front when no list has a block that fits, and a block that is freed in front of it becomes part of it. Either
//! changes two numbers, and no list, bit or link. That is the common case while a heap is fresh, and whenever blocks are allocated and freed behind
//! all others.
//!
//! Invariants: the top ends at its region's sentinel, and the block in front of it is used, or there is none; it has
//! [`LEAST_BLOCK_BYTES`] or more, or 0 bytes: then it begins at the sentinel. Its header is [`Header::TOP`], whatever its size, and so is
//! the sentinel's. The last block of any other region is an ordinary block.
//!
//! # Safety
//! The top is in a region that the heap has exclusive access to. The bytes that are cut off or added lie between its first header and the
//! region's sentinel.
#![allow(unsafe_code)]

use crate::block::Block;
use crate::block_size::LEAST_BLOCK_BYTES;
use crate::header::{Header, Sealer};
use crate::region::{REGION_OVERHEAD_BYTES, Region};

/// Where the top is, and how large.
#[derive(Clone, Copy)]
pub(crate) struct Top {
    block: Block,
    bytes: usize,
}

impl Top {
    /// The top of a heap without a first region.
    pub(crate) const NONE: Self = Self { block: Block::NONE, bytes: 0 };

    /// The top that is all of `region`, which the heap has exclusive access to and which has no block yet.
    pub(crate) fn of(region: Region, sealer: Sealer) -> Self {
        region.first().set_header(Header::TOP, sealer);
        region.sentinel().set_header(Header::TOP, sealer);
        Self { block: region.first(), bytes: region.bytes() - REGION_OVERHEAD_BYTES }
    }

    /// Whether there is no first region.
    pub(crate) fn is_none(&self) -> bool {
        self.block == Self::NONE.block
    }

    /// Whether the top begins at `block`.
    #[inline(always)]
    pub(crate) fn is_at(&self, block: Block) -> bool {
        self.block == block
    }

    /// Whether the top ends at `sentinel`.
    pub(crate) fn ends_at(&self, sentinel: Block) -> bool {
        self.block.address() + self.bytes == sentinel.address()
    }

    /// Where it begins.
    #[inline(always)]
    pub(crate) fn block(&self) -> Block {
        self.block
    }

    /// Its size in bytes; 0 if there is none.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether its header is intact. There is a first region.
    #[inline(always)]
    pub(crate) fn is_intact(&self, sealer: Sealer) -> bool {
        self.block.has_header(Header::TOP, sealer)
    }

    /// Cuts `bytes` off its front, or all of it if the remainder could not be a block; returns how many bytes that were. What is cut off has
    /// no header yet.
    ///
    /// # Safety
    /// - The top has `bytes` bytes or more.
    #[inline(always)]
    pub(crate) unsafe fn cut(&mut self, bytes: usize, sealer: Sealer) -> usize {
        let rest = self.bytes - bytes;
        let (cut, rest) = if rest < LEAST_BLOCK_BYTES { (self.bytes, 0) } else { (bytes, rest) };
        // SAFETY: `cut` is at most the top's size, so the place is in the top or is the sentinel; its header is written next.
        let block = unsafe { self.block.after(cut) };
        block.set_header(Header::TOP, sealer);
        *self = Self { block, bytes: rest };
        cut
    }

    /// Moves its start down to `block`: what lies between becomes part of the top. These are one or two blocks that no code uses and that are
    /// in no list.
    #[inline(always)]
    pub(crate) fn extend_down_to(&mut self, block: Block, sealer: Sealer) {
        block.set_header(Header::TOP, sealer);
        *self = Self { block, bytes: self.bytes + (self.block.address() - block.address()) };
    }

    /// Adds the `bytes` behind it, which end at the region's new `sentinel`.
    pub(crate) fn extend_up_to(&mut self, bytes: usize, sentinel: Block, sealer: Sealer) {
        sentinel.set_header(Header::TOP, sealer);
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests;
