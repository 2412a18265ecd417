//! The heap under test, as the workloads see it.
//!
//! [`CHeap`] calls the C symbols `malloc`, `calloc`, `realloc` and `free`, so that the preloaded library
//! answers, as in any program. A block whose stamp reads back wrong ends the process: a broken allocator fails instead of
//! winning.
//!
//! # Safety
//! Every block comes from the C allocator with the requested size, and goes back to it once, because releasing consumes it.
#![allow(unsafe_code)]

use crate::workload::failure;
use crate::workload::stamped_block::Block;
use std::hint::black_box;
use std::ptr::NonNull;

/// A source of blocks.
pub(crate) trait Heap {
    /// Whether blocks keep their contents: those of the null allocator overlap.
    const KEEPS_CONTENTS: bool;

    /// Allocates `size` bytes; ends the process if the heap refuses.
    fn allocate(&self, size: usize) -> Block;

    /// Frees a block.
    fn release(&self, block: Block);

    /// Verifies and releases the block that was in a slot, if there was one. Returns a value to add to the checksum.
    #[inline]
    fn empty(&self, slot: Option<Block>, tag: u64) -> u64 {
        slot.map_or(0, |block| {
            let sum = self.verify(&block, tag);
            self.release(block);
            sum
        })
    }

    /// Reads a stamp back and ends the process if it is not `tag`. Returns a value to add to the checksum.
    #[inline]
    fn verify(&self, block: &Block, tag: u64) -> u64 {
        let (first, last) = block.ends();
        let expected = block.expected_ends(tag);
        if Self::KEEPS_CONTENTS && block.size() > 0 && (first != expected || last != expected) {
            failure::corrupt(block.size(), block.address(), expected, (first, last));
        }
        first
    }
}

/// The C allocator of this process.
#[derive(Clone, Copy)]
pub(crate) struct CHeap;

impl Heap for CHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        // SAFETY: malloc accepts every size. `black_box` keeps the compiler from removing the pair of malloc and free.
        into_block(unsafe { black_box(libc::malloc(black_box(size))) }, size)
    }

    #[inline]
    fn release(&self, block: Block) {
        // SAFETY: malloc, calloc or realloc returned the address, and the block is consumed here, so it is freed once.
        unsafe { libc::free(block.start().as_ptr().cast()) }
    }
}

impl CHeap {
    /// Allocates `size` bytes of zeroes.
    pub(crate) fn allocate_zeroed(self, size: usize) -> Block {
        // SAFETY: calloc accepts every size.
        into_block(unsafe { black_box(libc::calloc(1, black_box(size))) }, size)
    }

    /// Changes the size of a block; realloc may move it.
    pub(crate) fn resize(self, block: Block, size: usize) -> Block {
        // SAFETY: malloc, calloc or realloc returned the address, and the old block is consumed here.
        into_block(unsafe { black_box(libc::realloc(block.start().as_ptr().cast(), size)) }, size)
    }
}

#[inline]
fn into_block(address: *mut libc::c_void, size: usize) -> Block {
    match NonNull::new(address.cast()) {
        // SAFETY: the C allocator just returned these `size` bytes for this block alone.
        Some(address) => unsafe { Block::adopt(address, size) },
        None => failure::exhausted(size),
    }
}
