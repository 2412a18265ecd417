//! The top: the free end of a heap's first region, which is in no list.
//!
//! ```text
//! | used | free | used | ................ top ................ | sentinel |
//!                      ^ block                                 ^ block + bytes
//! ```
//!
//! Blocks are cut from its front when no list has one that fits, and what is freed in front of it becomes part of it: either way two
//! numbers change, and no list, no bit and no link. So it is while a heap is fresh, and whenever blocks come and go behind all
//! others.
//!
//! Invariants: the top ends at its region's sentinel, and there is a used block before it, or nothing; it has [`LEAST_BLOCK_BYTES`] or
//! more, or none: then it begins at the sentinel. Its header says [`Header::TOP`], whatever its size, and so does the sentinel
//! behind it. Another region's last block is one like all others.
//!
//! # Safety
//! As in `block.rs`.
#![allow(unsafe_code)]

use crate::block::{Block, Header, LEAST_BLOCK_BYTES, Sealer};
use crate::region::{REGION_OVERHEAD_BYTES, Region};
use core::ptr::NonNull;

/// Where the top is, and how large.
#[derive(Clone, Copy)]
pub(crate) struct Top {
    block: Block,
    bytes: usize,
}

impl Top {
    /// Of a heap without a region. No block is there: an address that is not even.
    pub(crate) const NONE: Self = Self { block: Block::at(NonNull::dangling()), bytes: 0 };

    /// All of a region that has no block in it.
    ///
    /// # Safety
    /// The region is the heap's alone.
    pub(crate) unsafe fn of(region: Region, sealer: Sealer) -> Self {
        // SAFETY: first block and sentinel lie in the region.
        unsafe {
            region.first().set_header(Header::TOP, sealer);
            region.sentinel().set_header(Header::TOP, sealer);
        }
        Self { block: region.first(), bytes: region.bytes() - REGION_OVERHEAD_BYTES }
    }

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

    #[inline(always)]
    pub(crate) fn block(&self) -> Block {
        self.block
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nobody wrote over the header.
    #[inline(always)]
    pub(crate) fn is_whole(&self, sealer: Sealer) -> bool {
        // SAFETY: the top, or the sentinel, has a header.
        unsafe { self.block.has_header(Header::TOP, sealer) }
    }

    /// Takes `bytes` off its front, which it has, or all of it if the rest could not be a block; returns how many.
    ///
    /// # Safety
    /// The top's memory is the heap's alone. What is taken has no header yet.
    #[inline(always)]
    pub(crate) unsafe fn take(&mut self, bytes: usize, sealer: Sealer) -> usize {
        let rest = self.bytes - bytes;
        let (taken, rest) = if rest < LEAST_BLOCK_BYTES { (self.bytes, 0) } else { (bytes, rest) };
        // SAFETY: the new place is inside the top, or the sentinel.
        unsafe {
            let block = self.block.after(taken);
            block.set_header(Header::TOP, sealer);
            *self = Self { block, bytes: rest };
        }
        taken
    }

    /// Takes in what is in front of it, from `block` on.
    ///
    /// # Safety
    /// That is one or two blocks of the heap that nobody uses, and that are in no list.
    #[inline(always)]
    pub(crate) unsafe fn take_in(&mut self, block: Block, sealer: Sealer) {
        // SAFETY: a block has a header.
        unsafe { block.set_header(Header::TOP, sealer) };
        *self = Self { block, bytes: self.bytes + (self.block.address() - block.address()) };
    }

    /// Takes in the `bytes` behind it, up to the new sentinel.
    ///
    /// # Safety
    /// They are the heap's alone.
    pub(crate) unsafe fn grow(&mut self, bytes: usize, sentinel: Block, sealer: Sealer) {
        // SAFETY: the sentinel lies at the end of what is taken in.
        unsafe { sentinel.set_header(Header::TOP, sealer) };
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests;
