//! The heaps of rlsf and talc behind the workloads' interface, beside Freestone's TLSF heap: over the same memory, in the same process;
//! and the choice between them.
//!
//! # Safety
//! Blocks are freed into the heap they came from, with the size they were asked for, for each heap is the only one that makes them.
#![allow(unsafe_code)]

use super::Outcome;
use super::heap::{Block, CHeap, EXHAUSTED_EXIT, Heap, broken};
use super::meter::Meter;
use super::params::{Param, Params};
use super::tlsf_heap::{ALIGNMENT, TlsfHeap, memory};
use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;

/// Memory of a TLSF heap and its peers.
const HEAP_BYTES: usize = 64 << 20;

/// A workload for whichever heap its parameter [`AnyHeap::PARAM`] names.
pub(crate) trait AnyHeap {
    const PARAM: Param =
        Param::fixed("heap", 0, "0: malloc; in the same process, over 64 MiB: 1: a TLSF heap; 2: rlsf's; 3: talc's");

    fn run_on<H: Heap>(params: &Params, meter: &mut Meter, heap: H) -> Outcome;

    fn run(params: &Params, meter: &mut Meter) -> Outcome {
        match params.get("heap") {
            0 => Self::run_on(params, meter, CHeap),
            1 => Self::run_on(params, meter, TlsfHeap::new(HEAP_BYTES)),
            2 => Self::run_on(params, meter, RlsfHeap::new(HEAP_BYTES)),
            _ => Self::run_on(params, meter, TalcHeap::new(HEAP_BYTES)),
        }
    }
}

/// How large blocks are asked for.
fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, ALIGNMENT) {
        Ok(layout) => layout,
        Err(error) => broken(&format!("a request for {size} bytes: {error}")),
    }
}

/// The block at `address`, or the end of the program: the heap is full.
fn served(name: &str, address: Option<NonNull<u8>>, size: usize) -> Block {
    match address {
        // SAFETY: the heap gave these bytes away.
        Some(address) => unsafe { Block::adopt(address, size) },
        None => {
            eprintln!("workload: the heap of {name} refused {size} bytes");
            std::process::exit(EXHAUSTED_EXIT)
        }
    }
}

/// One heap of rlsf.
pub(crate) struct RlsfHeap(RefCell<rlsf::Tlsf<'static, u32, u32, 28, 32>>);

impl RlsfHeap {
    /// A heap over `bytes` bytes, which are never given back.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut heap = rlsf::Tlsf::new();
        heap.insert_free_block(memory(bytes));
        Self(RefCell::new(heap))
    }
}

impl Heap for RlsfHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        served("rlsf", self.0.borrow_mut().allocate(layout(size)), size)
    }

    #[inline]
    fn release(&self, block: Block) {
        if let Some(address) = NonNull::new(block.address() as *mut u8) {
            // SAFETY: the block came from this heap, with this alignment, and is consumed here.
            unsafe { self.0.borrow_mut().deallocate(address, ALIGNMENT) };
        }
    }
}

/// One heap of talc.
pub(crate) struct TalcHeap(RefCell<talc::base::Talc<talc::source::Manual, talc::base::binning::DefaultBinning>>);

impl TalcHeap {
    /// A heap over `bytes` bytes, which are never given back.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut heap = talc::base::Talc::new(talc::source::Manual);
        // SAFETY: the memory is this heap's alone, for ever.
        if unsafe { heap.claim(memory(bytes).as_mut_ptr().cast(), bytes) }.is_none() {
            broken("the heap of talc refused its region");
        }
        Self(RefCell::new(heap))
    }
}

impl Heap for TalcHeap {
    const KEEPS_CONTENTS: bool = true;

    #[inline]
    fn allocate(&self, size: usize) -> Block {
        // SAFETY: workloads ask for bytes.
        let address = unsafe { self.0.borrow_mut().allocate(layout(size)) };
        served("talc", address, size)
    }

    #[inline]
    fn release(&self, block: Block) {
        let layout = layout(block.size());
        // SAFETY: the block came from this heap, with this layout, and is consumed here.
        unsafe { self.0.borrow_mut().deallocate(block.address() as *mut u8, layout) };
    }
}
