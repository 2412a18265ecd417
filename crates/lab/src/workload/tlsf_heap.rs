//! Freestone's TLSF heap behind the workloads' interface, for experiment A and the latency tail.
//!
//! # Safety
//! Blocks are freed into the heap they came from, for the heap is the only one that makes them.
#![allow(unsafe_code)]

use super::heap::{Block, EXHAUSTED_EXIT, Heap, broken};
use freestone_tlsf::Tlsf;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Alignment of every block, as malloc's.
pub(crate) const ALIGNMENT: usize = 16;

/// `bytes` bytes for one heap, 16-byte aligned, never given back. They are written once, as a program with deadlines does: what the
/// first touch of an OS page costs is not the heap's.
pub(crate) fn memory(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    let words: &'static mut [MaybeUninit<u128>] = Box::leak(Box::new_uninit_slice(bytes / size_of::<u128>()));
    words.fill(MaybeUninit::new(1));
    // SAFETY: the same memory, as bytes.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// One TLSF heap over memory of its own.
pub(crate) struct TlsfHeap(RefCell<Tlsf<'static>>);

impl TlsfHeap {
    /// A heap over `bytes` bytes, which are never given back.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut heap = Tlsf::new();
        if let Err(error) = heap.add_region(memory(bytes)) {
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
            // SAFETY: the heap gave these bytes away.
            Ok(address) => unsafe { Block::adopt(address, size) },
            Err(error) => {
                eprintln!("workload: the TLSF heap refused {size} bytes: {error:?}");
                std::process::exit(EXHAUSTED_EXIT)
            }
        }
    }

    #[inline]
    fn release(&self, block: Block) {
        if let Some(address) = NonNull::new(block.address() as *mut u8) {
            // SAFETY: the block came from this heap and is consumed here.
            if let Err(error) = unsafe { self.0.borrow_mut().deallocate(address) } {
                broken(&format!("the TLSF heap refused its own block: {error:?}"));
            }
        }
    }
}
