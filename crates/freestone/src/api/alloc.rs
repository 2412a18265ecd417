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
use crate::api::process::{self, PROCESS};
use crate::api::recording;
use crate::api::shortage::{self, or_enomem};
use crate::record::recorder::Asked;
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, class_of, class_of_aligned};
use crate::span::family::Family;
use crate::thread::any_block::is_possible;
use crate::thread::current;
use crate::thread::heap::own::{Current, Own};
use crate::thread::large;
use crate::thread::new_block::NewBlock;
use crate::thread::recorded::{self, RecordedThread};
use crate::thread::watched::request::Request;
use core::ptr;
use freestone_os::System;

/// Allocates `size` bytes aligned to 16; null when memory runs out.
#[inline(always)]
#[must_use]
pub fn allocate(size: usize) -> *mut u8 {
    allocate_as(size, Family::C)
}

/// Allocates `size` bytes aligned to 16, which functions of `family` will free; null when memory runs out.
#[inline(always)]
#[must_use]
pub fn allocate_as(size: usize, family: Family) -> *mut u8 {
    if size <= SMALL_MAX {
        let class = class_of(size);
        let block = current::get().pop(class);
        if !block.is_null() {
            return block;
        }
        return allocate_small(size, family);
    }
    allocate_large(size, family)
}

/// What sizes are below that have a size class.
pub const SMALL_BOUND: usize = SMALL_MAX + 1;

/// Allocates a small block that this thread has at hand, aligned to 16. Null if it has none, or if `size` is not below `bound`.
///
/// # Safety
/// - `bound` is at most [`SMALL_BOUND`].
#[inline(always)]
#[must_use]
pub unsafe fn allocate_below(size: usize, bound: usize) -> *mut u8 {
    if size >= bound {
        return ptr::null_mut();
    }
    // SAFETY: the size is below a bound that is at most `SMALL_BOUND` (this function's contract).
    unsafe { core::hint::assert_unchecked(size <= SMALL_MAX) };
    current::get().pop(class_of(size))
}

/// Allocates a small block, aligned to 16, when the bin was empty, or the thread has no heap.
#[cold]
#[inline(never)]
#[must_use]
fn allocate_small(size: usize, family: Family) -> *mut u8 {
    let heap = current::get();
    if heap.is_placeholder() { allocate_without_heap(size, family) } else { allocate_with_heap(size, family, heap) }
}

/// As [`allocate_small`], of a thread's heap. A function of its own, so that calls that are recorded save no registers.
#[inline(never)]
fn allocate_with_heap(size: usize, family: Family, heap: Current<'static, System>) -> *mut u8 {
    let block = heap.at_hand(size, family);
    if !block.is_null() {
        return block;
    }
    match heap.with_chosen(class_of(size)) {
        Some(own) => allocate_sampled(own, size, family),
        None => allocate_cleared(size, family),
    }
}

/// As [`allocate_small`], where the heap profile seems to have chosen the block that would be taken.
#[cold]
#[inline(never)]
fn allocate_sampled(own: Own<'_, System>, size: usize, family: Family) -> *mut u8 {
    let block = own.allocate_sampled(&Request::new(size, 1, family));
    if block.is_null() {
        return allocate_not_at_hand(size, 1, family);
    }
    process::upkeep();
    block
}

/// As [`allocate_small`], when this thread's heap is not watched, clears freed blocks, or has no block at hand.
#[inline(never)]
fn allocate_cleared(size: usize, family: Family) -> *mut u8 {
    let block = current::get().cleared_at_hand(size, family);
    if block.is_null() { allocate_not_at_hand(size, 1, family) } else { block }
}

/// Allocates a small block when this thread's heap is not watched, or has none at hand, or the thread's calls are recorded. `align` is a power of two.
#[cold]
#[inline(never)]
fn allocate_not_at_hand(size: usize, align: usize, family: Family) -> *mut u8 {
    match recording::recorded() {
        Some(record) => allocate_recorded(record, size, align, family),
        None => allocate_small_slow(size, align, family),
    }
}

#[cold]
#[inline(never)]
fn allocate_small_slow(size: usize, align: usize, family: Family) -> *mut u8 {
    let attempt = || {
        let block = with_heap(|own| own.allocate_for(Request::new(size, align, family)).start);
        block.unwrap_or(ptr::null_mut())
    };
    let block = shortage::handle(attempt(), |block| block.is_null(), attempt);
    process::upkeep();
    or_enomem(block)
}

/// Allocates `size` bytes, more than [`SMALL_MAX`], as a page run.
#[cold]
#[inline(never)]
#[must_use]
fn allocate_large(size: usize, family: Family) -> *mut u8 {
    let cached = large::take_cached(current::get(), size);
    if cached.is_null() { allocate_large_slow(size, family) } else { cached }
}

#[cold]
#[inline(never)]
fn allocate_large_slow(size: usize, family: Family) -> *mut u8 {
    allocate_any_recorded(Request::new(size, 1, family))
}

/// Allocates a block of any size, and records that if calls are recorded.
fn allocate_any_recorded(request: Request) -> *mut u8 {
    match recording::recorded() {
        Some(record) => allocate_recorded(record, request.size, request.align, request.family),
        None => or_enomem(allocate_any(request).start),
    }
}

/// Allocates a small block when the thread has no heap of its own, or its calls are recorded.
#[inline(never)]
fn allocate_without_heap(size: usize, family: Family) -> *mut u8 {
    match recorded::recorded() {
        Some(record) if size < SMALL_MAX => {
            let block = recording::pop(record, recording::kind(family, false), size, class_of(size));
            if block.is_null() { allocate_recorded(record, size, 1, family) } else { block }
        }
        _ => allocate_not_at_hand(size, 1, family),
    }
}

/// Allocates in a thread whose calls are recorded. `align` is a power of two.
#[cold]
#[inline(never)]
fn allocate_recorded(record: &RecordedThread, size: usize, align: usize, family: Family) -> *mut u8 {
    recording::allocate(record, recording::kind(family, false), Asked { size, align }, || {
        if align <= GRANULE_BYTES {
            return if size <= SMALL_MAX { allocate_small(size, family) } else { allocate_large(size, family) };
        }
        // SAFETY: the alignment is a power of two.
        unsafe { allocate_aligned_as(size, align, family) }
    })
}

/// Allocates `size` bytes aligned to `align` bytes; null when memory runs out.
///
/// # Safety
/// - `align` is a power of two.
#[inline]
#[must_use]
pub unsafe fn allocate_aligned(size: usize, align: usize) -> *mut u8 {
    // SAFETY: `align` is a power of two (this function's contract).
    unsafe { allocate_aligned_as(size, align, Family::C) }
}

/// As [`allocate_aligned`], to be freed by functions of `family`.
///
/// # Safety
/// - `align` is a power of two.
#[inline]
#[must_use]
pub unsafe fn allocate_aligned_as(size: usize, align: usize, family: Family) -> *mut u8 {
    match class_of_aligned(size, align) {
        Some(class) => {
            let block = current::get().pop(class);
            if !block.is_null() {
                block
            } else if align <= GRANULE_BYTES {
                allocate_small(size, family)
            } else {
                allocate_not_at_hand(size, align, family)
            }
        }
        None => allocate_any_recorded(Request::new(size, align, family)),
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
    // SAFETY: `align` is a power of two (this function's contract).
    unsafe { allocate_zeroed_as(size, align, Family::C) }
}

/// As [`allocate_zeroed`], to be freed by functions of `family`.
///
/// # Safety
/// - `align` is a power of two.
#[inline]
#[must_use]
pub(crate) unsafe fn allocate_zeroed_as(size: usize, align: usize, family: Family) -> *mut u8 {
    if let Some(class) = class_of_aligned(size, align) {
        let block = current::get().pop(class);
        if !block.is_null() {
            // SAFETY: the block is of a class that holds `size` bytes, and no other code has it.
            unsafe { block.write_bytes(0, size) };
            return block;
        }
    }
    allocate_zeroed_slow(size, align, family)
}

#[cold]
#[inline(never)]
fn allocate_zeroed_slow(size: usize, align: usize, family: Family) -> *mut u8 {
    if size <= SMALL_MAX && align <= GRANULE_BYTES && current::get().has_at_hand() {
        let block = allocate_small(size, family);
        if !block.is_null() {
            // SAFETY: the block was allocated for `size` bytes just now, and no other code has it.
            unsafe { block.write_bytes(0, size) };
        }
        return block;
    }
    if let Some(record) = recording::recorded() {
        return recording::allocate(record, recording::kind(family, true), Asked { size, align }, || {
            // SAFETY: the alignment is a power of two.
            unsafe { allocate_zeroed_as(size, align, family) }
        });
    }
    let block = allocate_any(Request::new(size, align, family));
    if !block.zero && !block.start.is_null() {
        // SAFETY: the block was allocated for `size` bytes just now, and no other code has it.
        unsafe { PROCESS.shared.pages.clear(block.start, size) };
    }
    or_enomem(block.start)
}

/// Allocates a block of any size with this thread's heap.
fn allocate_any(request: Request) -> NewBlock {
    let attempt = || with_heap(|own| own.allocate_for(request)).unwrap_or(NewBlock::NONE);
    let is_short = |block: &NewBlock| block.start.is_null() && is_possible(request.size, request.align);
    let block = shortage::handle(attempt(), is_short, attempt);
    process::upkeep();
    block
}

#[cfg(test)]
mod tests;
