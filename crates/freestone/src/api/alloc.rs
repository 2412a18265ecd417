//! Allocating.
#![allow(unsafe_code)]
//!
//! The life of `malloc(24)`: granules of 16 bytes → class → this thread's bin → its first block. 16 instructions, four of them
//! branches at most, no lock, no atomic read-modify-write. Everything else (no heap yet, empty bin, large) is behind one of the two
//! branches that are there anyway.
//!
//! Failure is null and `ENOMEM`, never anything else.
//!
//! # Safety
//! This thread's heap is this thread's; the cold paths go through `global::with_heap`, which sees to that for threads without one.

use crate::api::global;
use crate::size_class::{SMALL_MAX, class_of, class_of_aligned};
use crate::thread::current;
use core::ptr;
use freestone_base::units::PAGE_BYTES;
use freestone_os::{Errno, process};

/// Alignments beyond this are refused: nothing sensible asks for them, and the arithmetic stays far from its limits.
const ALIGN_MAX: usize = 1 << 40;

/// Allocates `size` bytes aligned to 16; null when memory runs out.
#[inline(always)]
#[must_use]
pub fn allocate(size: usize) -> *mut u8 {
    if size <= SMALL_MAX {
        let class = class_of(size);
        let block = current::get().pop(class);
        if !block.is_null() {
            return block;
        }
        return allocate_small(class);
    }
    allocate_large(size)
}

/// [`allocate`], for blocks that will be freed by asking the page map (C's): at a rare peak the block may be of a larger class.
#[inline(always)]
#[must_use]
pub fn allocate_c(size: usize) -> *mut u8 {
    if size <= SMALL_MAX {
        let class = class_of(size);
        let block = current::get().pop(class);
        if !block.is_null() {
            return block;
        }
        return allocate_small_or_larger(class);
    }
    allocate_large(size)
}

/// [`allocate_small`], for [`allocate_c`].
#[cold]
#[inline(never)]
fn allocate_small_or_larger(class: usize) -> *mut u8 {
    or_enomem(pop_or_refill(class, true))
}

fn pop_or_refill(class: usize, borrow: bool) -> *mut u8 {
    let block = global::with_heap(|heap| {
        let block = heap.pop(class);
        if block.is_null() {
            // SAFETY: `with_heap` gives a heap that is alive and this thread's for the moment.
            unsafe { heap.refill(class, borrow) }
        } else {
            block
        }
    });
    block.unwrap_or(ptr::null_mut())
}

/// Allocates a block of a class when the bin was empty, or the thread has no heap.
#[cold]
#[inline(never)]
#[must_use]
pub fn allocate_small(class: usize) -> *mut u8 {
    or_enomem(pop_or_refill(class, false))
}

/// Allocates `size` bytes as a page run.
#[cold]
#[inline(never)]
#[must_use]
pub fn allocate_large(size: usize) -> *mut u8 {
    or_enomem(large(size, PAGE_BYTES).0)
}

/// Allocates `size` bytes aligned to `align`, a power of two; null when memory runs out.
#[inline]
#[must_use]
pub fn allocate_aligned(size: usize, align: usize) -> *mut u8 {
    match class_of_aligned(size, align) {
        Some(class) => {
            let block = current::get().pop(class);
            if block.is_null() { allocate_small(class) } else { block }
        }
        None => or_enomem(large(size, align).0),
    }
}

/// Allocates `size` zero bytes aligned to `align`, a power of two; null when memory runs out. Memory that is fresh from the kernel
/// is not cleared again.
#[must_use]
pub fn allocate_zeroed(size: usize, align: usize) -> *mut u8 {
    let (block, zero) = match class_of_aligned(size, align) {
        Some(class) => {
            let block = current::get().pop(class);
            (if block.is_null() { allocate_small(class) } else { block }, false)
        }
        None => large(size, align),
    };
    if !zero && !block.is_null() {
        // SAFETY: the block holds `size` bytes.
        unsafe { block.write_bytes(0, size) };
    }
    or_enomem(block)
}

/// Whether a block of this size and alignment can exist.
#[must_use]
pub fn is_sensible(size: usize, align: usize) -> bool {
    size <= isize::MAX as usize && align <= ALIGN_MAX
}

/// A large block and whether it is zero.
fn large(size: usize, align: usize) -> (*mut u8, bool) {
    if !is_sensible(size, align) {
        return (ptr::null_mut(), false);
    }
    match global::with_heap(|heap| heap.allocate_large(size, align)) {
        Some(block) => (block.start, block.zero),
        None => (ptr::null_mut(), false),
    }
}

fn or_enomem(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        process::set_errno(Errno::NOMEM);
    }
    block
}
