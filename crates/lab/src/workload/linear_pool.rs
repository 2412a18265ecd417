//! The pool of experiment D's first half: blocks of one size, found by a linear search, in front of `calloc`.
//!
//! Source: the published pool in front of calloc. A request takes the first unused block; a free compares the address with that of every
//! block. Requests of another size, or when all blocks are in use, go to `calloc`; blocks that are not found go to `free`. It is here to show
//! what a better pool is worth.

use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};

/// The pool, with the address of each block.
pub(crate) struct LinearPool {
    size: usize,
    /// The address of each block, and the block itself while it is unused.
    slots: Vec<(usize, Option<Block>)>,
}

impl LinearPool {
    /// A pool of `len` blocks of `size` bytes.
    pub(crate) fn new(len: usize, size: usize) -> Self {
        let slots = (0..len).map(|_| {
            let block = CHeap.allocate(size);
            (block.address(), Some(block))
        });
        Self { size, slots: slots.collect() }
    }

    /// Allocates `size` bytes of zeroes.
    pub(crate) fn allocate_zeroed(&mut self, size: usize) -> Block {
        let unused = if size == self.size { self.slots.iter_mut().find_map(|(_, block)| block.take()) } else { None };
        match unused {
            Some(block) => {
                block.fill_from(0, 0);
                block
            }
            None => CHeap.allocate_zeroed(size),
        }
    }

    /// Frees a block.
    pub(crate) fn release(&mut self, block: Block) {
        match self.slots.iter_mut().find(|(address, _)| *address == block.address()) {
            Some((_, slot)) => *slot = Some(block),
            None => CHeap.release(block),
        }
    }
}
