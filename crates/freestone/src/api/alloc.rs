//! Allocating.
#![allow(unsafe_code)]
//!
//! The life of `malloc(24)`: granules of 16 bytes → class → this thread's bin → its first block. `hotpath.golden` lists the instructions: no
//! lock, no atomic read-modify-write, two branches. Everything else (no heap yet, an empty bin, a large size) leaves by one of these two.
//!
//! Failure is null and `ENOMEM`, never anything else.
//!
//! # Safety
//! This thread's heap is this thread's; the cold paths go through `global::with_heap`, which sees to that for threads without one.

use crate::api::{global, pressure};
use crate::size_class::{SMALL_MAX, class_of, class_of_aligned};
use crate::thread::any_block::is_possible;
use crate::thread::large::{self, NewBlock};
use crate::thread::{current, refill};
use core::ptr;
use freestone_os::{Errno, process};

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

/// Allocates a block of a class when the bin was empty, or the thread has no heap.
#[cold]
#[inline(never)]
#[must_use]
fn allocate_small(class: usize) -> *mut u8 {
    let attempt = || {
        let block = global::with_heap(|own| {
            let block = own.bins().pop(class);
            if block.is_null() { refill::refill(own, class) } else { block }
        });
        block.unwrap_or(ptr::null_mut())
    };
    let block = pressure::watch(attempt(), |block| block.is_null(), attempt);
    global::background().start_if_due();
    or_enomem(block)
}

/// Allocates `size` bytes as a page run.
#[cold]
#[inline(never)]
#[must_use]
pub fn allocate_large(size: usize) -> *mut u8 {
    let cached = large::take_cached(current::get(), size);
    if cached.is_null() { allocate_large_slow(size) } else { cached }
}

#[cold]
#[inline(never)]
fn allocate_large_slow(size: usize) -> *mut u8 {
    or_enomem(any(size, 1).start)
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
        None => or_enomem(any(size, align).start),
    }
}

/// Allocates `size` zero bytes aligned to `align`, a power of two; null when memory runs out. Memory that is fresh from the kernel
/// is not cleared again.
#[inline]
#[must_use]
pub fn allocate_zeroed(size: usize, align: usize) -> *mut u8 {
    if let Some(class) = class_of_aligned(size, align) {
        let block = current::get().pop(class);
        if !block.is_null() {
            // SAFETY: the block holds `size` bytes.
            unsafe { block.write_bytes(0, size) };
            return block;
        }
    }
    allocate_zeroed_slow(size, align)
}

#[cold]
#[inline(never)]
fn allocate_zeroed_slow(size: usize, align: usize) -> *mut u8 {
    let block = any(size, align);
    if !block.zero && !block.start.is_null() {
        // SAFETY: the block holds `size` bytes.
        unsafe { block.start.write_bytes(0, size) };
    }
    or_enomem(block.start)
}

/// Any block, with this thread's heap.
fn any(size: usize, align: usize) -> NewBlock {
    let attempt = || global::with_heap(|own| own.allocate(size, align)).unwrap_or(NewBlock::NONE);
    let is_short = |block: &NewBlock| block.start.is_null() && is_possible(&global::shared().pages, size, align);
    let block = pressure::watch(attempt(), is_short, attempt);
    global::background().start_if_due();
    block
}

/// Passes a block on; null sets `errno`.
pub(super) fn or_enomem(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        process::set_errno(Errno::NOMEM);
    }
    block
}
