//! The heaps of rlsf and talc as [`Heap`]s, beside Freestone's TLSF heap: over the same kind of region, in the same process. A workload
//! chooses between them by a parameter.
//!
//! # Safety
//! A heap's region is leaked, so its blocks stay valid. Blocks go back to the heap that allocated them, with the size that they were asked
//! for, because a workload has one heap and a block has its size.
#![allow(unsafe_code)]

use crate::workload::definition::Outcome;
use crate::workload::failure::{broken, heap_exhausted};
use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::stamped_block::Block;
use crate::workload::tested_heap::{CHeap, Heap};
use crate::workload::tlsf_heap::{ALIGNMENT, TlsfHeap, region};
use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;

/// Size of the region of a TLSF heap and of its peers.
const REGION_BYTES: usize = 64 << 20;

/// A workload that runs over the heap named by its parameter [`AnyHeap::PARAM`].
pub(crate) trait AnyHeap {
    const PARAM: Param = Param::fixed(
        "heap",
        0,
        "0: malloc; or a heap over 64 MiB inside the process, 1: Freestone's TLSF, 2: rlsf, 3: talc",
    );

    /// Runs the workload over `heap`.
    fn run_on<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome;

    /// Runs the workload over the heap that `params` name.
    fn run(params: &Params, meter: &mut Meter) -> Outcome {
        match params.get("heap") {
            0 => Self::run_on(params, meter, CHeap),
            1 => Self::run_on(params, meter, TlsfHeap::new(REGION_BYTES)),
            2 => Self::run_on(params, meter, RlsfHeap::new(REGION_BYTES)),
            _ => Self::run_on(params, meter, TalcHeap::new(REGION_BYTES)),
        }
    }
}

/// The layout of a request for `size` bytes.
fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, ALIGNMENT) {
        Ok(layout) => layout,
        Err(error) => broken(&format!("a request for {size} bytes: {error}")),
    }
}

/// One heap of rlsf.
pub(crate) struct RlsfHeap(RefCell<rlsf::Tlsf<'static, u32, u32, 28, 32>>);

impl RlsfHeap {
    /// A heap over a region of `bytes` bytes, which is never freed.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut heap = rlsf::Tlsf::new();
        heap.insert_free_block(region(bytes));
        Self(RefCell::new(heap))
    }
}

impl Heap for RlsfHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        match self.0.borrow_mut().allocate(layout(size)) {
            // SAFETY: the heap just allocated these `size` bytes for this block alone, in a region that is never freed.
            Some(address) => unsafe { Block::adopt(address, size) },
            None => heap_exhausted("the heap of rlsf", size),
        }
    }

    #[inline]
    fn release(&self, block: Block) {
        // SAFETY: this heap allocated the block with this alignment, and the block is consumed here, so it is freed once.
        unsafe { self.0.borrow_mut().deallocate(block.start(), ALIGNMENT) };
    }
}

/// One heap of talc.
pub(crate) struct TalcHeap(RefCell<talc::base::Talc<talc::source::Manual, talc::base::binning::DefaultBinning>>);

impl TalcHeap {
    /// A heap over a region of `bytes` bytes, which is never freed.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut heap = talc::base::Talc::new(talc::source::Manual);
        // SAFETY: the region was leaked for this heap alone.
        if unsafe { heap.claim(region(bytes).as_mut_ptr().cast(), bytes) }.is_none() {
            broken("the heap of talc refused its region");
        }
        Self(RefCell::new(heap))
    }
}

impl Heap for TalcHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        let layout = layout(size);
        // SAFETY: the layout has at least one byte: no workload that can use this heap requests 0 bytes.
        let address: Option<NonNull<u8>> = unsafe { self.0.borrow_mut().allocate(layout) };
        match address {
            // SAFETY: the heap just allocated these `size` bytes for this block alone, in a region that is never freed.
            Some(address) => unsafe { Block::adopt(address, size) },
            None => heap_exhausted("the heap of talc", size),
        }
    }

    #[inline]
    fn release(&self, block: Block) {
        let layout = layout(block.size());
        // SAFETY: this heap allocated the block with this layout, and the block is consumed here, so it is freed once.
        unsafe { self.0.borrow_mut().deallocate(block.start().as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses_memory_again(heap: impl Heap) {
        let (block, other) = (heap.allocate(1000), heap.allocate(1000));
        block.stamp(7);
        other.stamp(8);
        assert_eq!((heap.verify(&block, 7), heap.verify(&other, 8)), (7, 8));
        heap.release(block);
        heap.release(other);
        (0..1000).for_each(|_| heap.release(heap.allocate(1000)));
    }

    #[test]
    fn both_heaps_keep_stamps_and_use_freed_memory_again() {
        // A thousand blocks of 1000 bytes do not fit at once.
        uses_memory_again(RlsfHeap::new(128 << 10));
        uses_memory_again(TalcHeap::new(128 << 10));
    }
}
