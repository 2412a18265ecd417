//! Freestone's TLSF heap as a [`Heap`], for experiment A and the latency tail.
//!
//! # Safety
//! A heap's region is leaked, so its blocks stay valid. Blocks go back to the heap that allocated them, because a workload has one heap.
#![allow(unsafe_code)]

use crate::workload::failure::{broken, heap_exhausted};
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::Heap;
use freestone_tlsf::Tlsf;
use std::cell::RefCell;
use std::mem::MaybeUninit;

/// Alignment of every block, as malloc's.
pub(crate) const ALIGNMENT: usize = 16;

/// `bytes` bytes for one heap, 16-byte aligned, never freed. They are written once, as a program with deadlines does, because the first
/// access to an OS page costs a page fault that is not the heap's.
pub(crate) fn region(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    let words: &'static mut [MaybeUninit<u128>] = Box::leak(Box::new_uninit_slice(bytes / size_of::<u128>()));
    words.fill(MaybeUninit::new(1));
    // SAFETY: the pointer and the length in bytes describe the leaked words, and only the result refers to them from now on.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// One TLSF heap over a region of its own.
pub(crate) struct TlsfHeap(RefCell<Tlsf<'static>>);

impl TlsfHeap {
    /// A heap over a region of `bytes` bytes, which is never freed.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut heap = Tlsf::new();
        if let Err(error) = heap.add_region(region(bytes)) {
            broken(&format!("the TLSF heap refused its region: {error:?}"));
        }
        Self(RefCell::new(heap))
    }
}

impl Heap for TlsfHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        match self.0.borrow_mut().allocate(size, ALIGNMENT) {
            // SAFETY: the heap just allocated these `size` bytes for this block alone, in a region that is never freed.
            Ok(address) => unsafe { Block::adopt(address, size) },
            Err(_) => heap_exhausted("the TLSF heap", size),
        }
    }

    #[inline]
    fn release(&self, block: Block) {
        // SAFETY: this heap allocated the block, and the block is consumed here, so it is freed once.
        if let Err(error) = unsafe { self.0.borrow_mut().deallocate(block.start()) } {
            broken(&format!("the TLSF heap refused its own block: {error:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_aligned_and_has_the_length_asked_for() {
        let region = region(4096);
        assert_eq!((region.len(), region.as_ptr() as usize % ALIGNMENT), (4096, 0));
    }

    #[test]
    fn a_block_keeps_its_stamp_and_its_memory_is_used_again() {
        let heap = TlsfHeap::new(64 << 10);
        let (block, other) = (heap.allocate(1000), heap.allocate(1000));
        block.stamp(7);
        other.stamp(8);
        assert_eq!((heap.verify(&block, 7), block.address() % ALIGNMENT), (7, 0));
        let address = block.address();
        heap.release(block);
        assert_eq!(heap.allocate(1000).address(), address);
    }
}
