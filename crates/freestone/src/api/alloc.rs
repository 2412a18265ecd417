//! Allocating.
#![allow(unsafe_code)]
//!
//! The life of `malloc(24)`: granules of 16 bytes → class → this thread's bin → its first block. `hotpath.golden` lists the instructions: no
//! lock, no atomic read-modify-write, two branches. Everything else (no heap yet, an empty bin, a large size) leaves by one of these two.
//!
//! Failure is null and `ENOMEM`, never anything else.
//!
//! # Safety
//! Alignments are powers of two: the page heap's arithmetic is
//! right for no others.

use crate::api::local_heap::with_heap;
use crate::api::process::PROCESS;
use crate::api::shortage::{self, or_enomem};
use crate::size_class::{SMALL_MAX, class_of, class_of_aligned};
use crate::thread::any_block::is_possible;
use crate::thread::large::{self, NewBlock};
use crate::thread::{current, refill};
use core::ptr;

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

/// Allocates a block of `class` when the bin was empty, or the thread has no heap.
#[cold]
#[inline(never)]
#[must_use]
fn allocate_small(class: usize) -> *mut u8 {
    let attempt = || {
        let block = with_heap(|own| {
            let block = own.bins().pop(class);
            if block.is_null() { refill::refill(own, class) } else { block }
        });
        block.unwrap_or(ptr::null_mut())
    };
    let block = shortage::handle(attempt(), |block| block.is_null(), attempt);
    PROCESS.background.start_if_due(&PROCESS.shared);
    or_enomem(block)
}

/// Allocates `size` bytes, more than [`SMALL_MAX`], as a page run.
#[cold]
#[inline(never)]
#[must_use]
fn allocate_large(size: usize) -> *mut u8 {
    let cached = large::take_cached(current::get(), size);
    if cached.is_null() { allocate_large_slow(size) } else { cached }
}

#[cold]
#[inline(never)]
fn allocate_large_slow(size: usize) -> *mut u8 {
    // SAFETY: 1 is a power of two.
    or_enomem(unsafe { allocate_any(size, 1) }.start)
}

/// Allocates `size` bytes aligned to `align` bytes; null when memory runs out.
///
/// # Safety
/// - `align` is a power of two.
#[inline]
#[must_use]
pub unsafe fn allocate_aligned(size: usize, align: usize) -> *mut u8 {
    match class_of_aligned(size, align) {
        Some(class) => {
            let block = current::get().pop(class);
            if block.is_null() { allocate_small(class) } else { block }
        }
        // SAFETY: `align` is a power of two (this function's contract).
        None => or_enomem(unsafe { allocate_any(size, align) }.start),
    }
}

/// Allocates `size` zero bytes aligned to `align` bytes; null when memory runs out. Does not clear memory that comes straight from the
/// kernel.
///
/// # Safety
/// - `align` is a power of two.
#[inline]
#[must_use]
pub unsafe fn allocate_zeroed(size: usize, align: usize) -> *mut u8 {
    if let Some(class) = class_of_aligned(size, align) {
        let block = current::get().pop(class);
        if !block.is_null() {
            // SAFETY: the block is of a class that holds `size` bytes, and no other code has it.
            unsafe { block.write_bytes(0, size) };
            return block;
        }
    }
    // SAFETY: `align` is a power of two (this function's contract).
    unsafe { allocate_zeroed_slow(size, align) }
}

/// # Safety
/// - `align` is a power of two.
#[cold]
#[inline(never)]
unsafe fn allocate_zeroed_slow(size: usize, align: usize) -> *mut u8 {
    // SAFETY: `align` is a power of two (this function's contract).
    let block = unsafe { allocate_any(size, align) };
    if !block.zero && !block.start.is_null() {
        // SAFETY: the block was allocated for `size` bytes just now, and no other code has it.
        unsafe { block.start.write_bytes(0, size) };
    }
    or_enomem(block.start)
}

/// Allocates a block of any size with this thread's heap.
///
/// # Safety
/// - `align` is a power of two.
unsafe fn allocate_any(size: usize, align: usize) -> NewBlock {
    let attempt = || with_heap(|own| own.allocate(size, align)).unwrap_or(NewBlock::NONE);
    let is_short = |block: &NewBlock| block.start.is_null() && is_possible(size, align);
    let block = shortage::handle(attempt(), is_short, attempt);
    PROCESS.background.start_if_due(&PROCESS.shared);
    block
}
