//! Freeing.
#![allow(unsafe_code)]
//!
//! The life of `free(p)`: page of `p` → page map entry → "this thread's, and of which class" in one subtraction → onto the bin.
//! `hotpath.golden` lists the instructions. Null, foreign and misaligned pointers, blocks of other threads and large blocks all fail one of the
//! tests that are there anyway. One more test finds blocks that may be free already (`span::free_node`).
//!
//! Freeing never fails and never changes `errno`: below are raw system calls only.
//!
//! # Safety
//! As for C's `free`: `block` was returned by this allocator, is not freed, and no code uses it any more. A violation that can be seen is
//! reported (`misuse`).

use crate::api::local_heap::{keep_freed, with_heap};
use crate::size_class::{N_CLASSES, block_bytes};
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Current;
use crate::thread::{any_block, current, flush};
use freestone_os::Linux;

/// Frees a block; does nothing for null.
///
/// # Safety
/// - `block` is null, or was returned by this allocator and is not freed; no code uses it any more.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    // SAFETY: this function's contract is that of `free_own`.
    if unsafe { !free_own(block, N_CLASSES) } {
        // SAFETY: this function's contract is that of `free_slow`.
        unsafe { free_slow(block) };
    }
}

/// Frees a small block of this thread if its class is below `bound`, which is `N_CLASSES` or less. `false` of any other block, and of one that
/// may be free already: they stay as they are.
///
/// # Safety
/// - As for [`free`].
#[inline(always)]
pub(crate) unsafe fn free_own(block: *mut u8, bound: usize) -> bool {
    let heap = current::get();
    let Some((own, class)) = heap.own_class_below(block.addr(), bound) else { return false };
    // SAFETY: the page map says that the block is of `class`, and no code uses it any more (this function's contract).
    let block = unsafe { FreeBlock::new(block, class) };
    if block.is_marked() {
        return false;
    }
    if own.bins().push(block) {
        overflow(heap, class);
    }
    true
}

/// Frees a small block of a known class without looking up its owner: flushing the bin does that.
///
/// # Safety
/// - `block` was returned by this allocator for a size of `class`, and is not freed; no code uses it any more.
#[inline(always)]
pub(crate) unsafe fn free_sized(block: *mut u8, class: usize) {
    // SAFETY: the block is one of `class` that no code uses any more (this function's contract).
    if let Err(block) = current::get().try_push(unsafe { FreeBlock::new(block, class) }) {
        free_sized_slow(block);
    }
}

/// Flushes a bin that has just run out of room.
#[cold]
#[inline(never)]
fn overflow(heap: Current<'_, Linux>, class: usize) {
    if let Some(own) = heap.own() {
        flush::overflow(own, class);
    }
}

/// Frees a block of a known class when the bin had no room, the block may be free already, or the thread has no heap.
#[cold]
#[inline(never)]
fn free_sized_slow(block: FreeBlock) {
    let mut block = Some(block);
    with_heap(|own| {
        if let Some(block) = block.take() {
            any_block::free_sized(own, block);
        }
    });
    if let Some(block) = block {
        // SAFETY: the block is free.
        unsafe { keep_freed(block.into_node().cast()) };
    }
}

/// Frees whatever is not a small block of this thread; does nothing for null.
///
/// # Safety
/// - As for [`free`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_slow(block: *mut u8) {
    if block.is_null() {
        return;
    }
    // SAFETY: the block is live and no code uses it any more (this function's contract).
    let freed = with_heap(|own| unsafe { own.free(block) });
    if freed.is_none() {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { keep_freed(block) };
    }
}

/// Bytes of a block, all of which may be used; 0 for null. An invalid pointer is reported, and the result is 0.
///
/// # Safety
/// - `block` is null, or was returned by this allocator and is not freed.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    match current::get().small_class(block.addr()) {
        Some(class) => block_bytes(class),
        None => usable_size_slow(block),
    }
}

#[cold]
#[inline(never)]
fn usable_size_slow(block: *mut u8) -> usize {
    if block.is_null() {
        return 0;
    }
    with_heap(|own| own.usable_bytes(block)).flatten().unwrap_or(0)
}
