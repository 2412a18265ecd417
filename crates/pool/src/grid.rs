//! The places of a pool's blocks: address to index, and back.
//!
//! An address is the start of a block exactly if its offset from the first block, rotated right by `spacing_log2`, is below the number of
//! blocks. Offset bits below the spacing end up at the top and make the number huge; so does an address in front of or behind the
//! blocks. One subtraction, one rotation and one comparison distinguish all bad addresses from good ones.
//!
//! Invariant: the region has [`Shape::blocks_bytes`] bytes of blocks, and the bookkeeping behind them.
//!
//! # Safety
//! A pointer is made only from an index that was compared with the number of blocks before, so it stays inside the region.
#![allow(unsafe_code)]

use crate::error::Error;
use crate::shape::Shape;
use core::ptr::NonNull;

/// The blocks of one region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    start: NonNull<u8>,
    pub(crate) shape: Shape,
}

impl Grid {
    /// The blocks of `shape` in the `bytes` bytes at `start`, of which the pool will use `needed`.
    pub(crate) fn new(shape: Shape, start: NonNull<u8>, bytes: usize, needed: usize) -> Result<Self, Error> {
        let address = start.addr().get();
        if address % shape.align() != 0 {
            return Err(Error::RegionMisaligned { address, align: shape.align() });
        }
        if bytes < needed {
            return Err(Error::RegionTooSmall { bytes, least: needed });
        }
        Ok(Self { start, shape })
    }

    /// The index of the block that starts at `address`; a number greater than any index if none does.
    #[inline(always)]
    pub(crate) fn index_of(&self, address: usize) -> usize {
        address.wrapping_sub(self.start.addr().get()).rotate_right(self.shape.spacing_log2())
    }

    /// The block with this index.
    ///
    /// # Safety
    /// - The index is below the shape's count.
    #[inline(always)]
    pub(crate) unsafe fn block(&self, index: usize) -> NonNull<u8> {
        // SAFETY: the region has room for `count` blocks, so the block is in it.
        unsafe { self.start.byte_add(index << self.shape.spacing_log2()) }
    }

    /// Where the bookkeeping begins: behind the blocks.
    pub(crate) fn bookkeeping(&self) -> NonNull<u8> {
        // SAFETY: the region is as long as the shape needs, and that is more than the blocks.
        unsafe { self.start.byte_add(self.shape.blocks_bytes()) }
    }

    /// The address of the block with this index, for messages.
    pub(crate) fn address(&self, index: usize) -> usize {
        self.start.addr().get().wrapping_add(index << self.shape.spacing_log2())
    }

    /// Whether an address is in the blocks, or in a gap between them.
    pub(crate) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start.addr().get()) < self.shape.blocks_bytes()
    }

    /// Why `address` is not that of a block in use. The first `n_carved` blocks have been handed out at least once.
    #[cold]
    pub(crate) fn diagnose(&self, address: usize, n_carved: usize) -> Error {
        if !self.contains(address) {
            return Error::Foreign { address };
        }
        let index = address.wrapping_sub(self.start.addr().get()) >> self.shape.spacing_log2();
        let (block, bytes) = (self.address(index), self.shape.block_bytes());
        if block != address {
            Error::Interior { address, block, bytes }
        } else if index >= n_carved {
            Error::NeverAllocated { block, bytes }
        } else {
            Error::DoubleFree { block, bytes }
        }
    }
}
