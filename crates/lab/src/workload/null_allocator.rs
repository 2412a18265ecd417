//! The null allocator: hands out pieces of one ring of memory and frees nothing. A workload's loop over it costs what the loop itself costs.
//!
//! Blocks overlap once the ring wraps around, so their contents cannot be checked.
//!
//! # Safety
//! Every block lies inside the ring, which is leaked and therefore valid for ever; its bytes are only accessed through raw pointers.
#![allow(unsafe_code)]

use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::Heap;
use std::cell::Cell;
use std::hint::black_box;
use std::ptr::NonNull;

/// A handle with a ring of its own.
pub(crate) struct NullAllocator {
    ring: NonNull<u8>,
    len: usize,
    next: Cell<usize>,
}

// SAFETY: each handle owns its ring, and one thread at a time uses it. Blocks sent to other threads stay valid, because the ring is never
// freed.
unsafe impl Send for NullAllocator {}

impl NullAllocator {
    /// A ring for blocks of up to `largest` bytes; 64 KiB unless they need more, so that it stays in the processor's cache.
    pub(crate) fn new(largest: usize) -> Self {
        let len = largest.next_power_of_two().max(64 * 1024);
        let ring = Box::leak(vec![0_u8; len].into_boxed_slice());
        Self { ring: NonNull::from(ring).cast(), len, next: Cell::new(0) }
    }
}

impl Clone for NullAllocator {
    fn clone(&self) -> Self {
        Self::new(self.len)
    }
}

impl Heap for NullAllocator {
    const KEEPS_CONTENTS: bool = false;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        debug_assert!(size <= self.len, "a block larger than the ring");
        let start = if self.next.get() + size > self.len { 0 } else { self.next.get() };
        self.next.set(start + size.next_multiple_of(16));
        // SAFETY: `start + size` is at most the ring's length: no workload requests more than the largest size that it gave to `new`.
        let address = black_box(unsafe { self.ring.add(start) });
        // SAFETY: the bytes belong to the ring, are initialised, and are only accessed through raw pointers.
        unsafe { Block::adopt(address, black_box(size)) }
    }

    #[inline]
    fn release(&self, block: Block) {
        black_box(block.start());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_inside_the_ring_and_follow_each_other_until_it_wraps_around() {
        let heap = NullAllocator::new(100);
        let first = heap.allocate(100);
        let mut before = first.address();
        for _ in 1..(64 << 10) / 112 {
            let block = heap.allocate(100);
            assert_eq!(block.address(), before + 112);
            before = block.address();
        }
        assert_eq!(heap.allocate(100).address(), first.address());
    }

    #[test]
    fn the_largest_block_fits_and_a_copy_has_a_ring_of_its_own() {
        let heap = NullAllocator::new(100_000);
        let block = heap.allocate(100_000);
        block.fill_from(0, 1);
        assert_eq!(block.sum(), 100_000);
        assert_ne!(heap.clone().allocate(1).address(), block.address());
    }
}
