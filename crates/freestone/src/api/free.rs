//! Freeing.
#![allow(unsafe_code)]
//!
//! The life of `free(p)`: page of `p` → page map entry → "this thread's, and of which class" in one subtraction → onto the bin.
//! `hotpath.golden` lists the instructions. Null, foreign pointers, blocks of other threads and large blocks all fail one of the tests that
//! are there anyway.
//!
//! Freeing never fails and never changes `errno`: below are raw system calls only.
//!
//! # Safety
//! As for C's `free`: `block` was returned by this allocator and nobody uses it any more. What violates that and can be seen is named.

use crate::api::global;
use crate::size_class::block_bytes;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::Own;
use crate::thread::{current, flush};
use freestone_os::Linux;

/// Frees a block; null is nothing.
///
/// # Safety
/// - See the module header.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    if let Some((own, class)) = current::get().own_class(block.addr()) {
        // SAFETY: the page map says that the block is of `class`, and nobody uses it any more (this function's contract).
        if own.bins().push(unsafe { FreeBlock::new(block, class) }) {
            overflow(own, class);
        }
        return;
    }
    // SAFETY: nobody uses the block any more (this function's contract).
    unsafe { free_slow(block) }
}

/// Frees a small block of a known class without asking whose it is: flushing the bin finds out.
///
/// # Safety
/// - See the module header; the block is of `class`.
#[inline(always)]
pub unsafe fn free_sized(block: *mut u8, class: usize) {
    // SAFETY: the block is of `class`, and nobody uses it any more (this function's contract).
    if let Err(block) = current::get().try_push(unsafe { FreeBlock::new(block, class) }) {
        free_sized_slow(block);
    }
}

/// Looks at a bin that has just run out of room.
#[cold]
#[inline(never)]
fn overflow(own: Own<'_, Linux>, class: usize) {
    flush::overflow(own, class);
}

/// Frees a block of a known class when the bin had no room, or the thread has no heap.
#[cold]
#[inline(never)]
fn free_sized_slow(block: FreeBlock) {
    let mut block = Some(block);
    global::with_heap(|own| {
        if let Some(block) = block.take() {
            flush::push(own, block);
        }
    });
    if let Some(block) = block {
        global::keep_freed(block.into_node());
    }
}

/// Frees whatever is not this thread's small block.
///
/// # Safety
/// - See the module header.
#[cold]
#[inline(never)]
pub unsafe fn free_slow(block: *mut u8) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let freed = global::with_heap(|own| unsafe { own.free(block) });
    if freed.is_none() {
        global::keep_freed(block.cast());
    }
}

/// Bytes that a block may be used to its end for; 0 for null. An invalid pointer is reported, and its answer is 0.
///
/// # Safety
/// - `block` is null or was returned by this allocator and not freed.
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
    global::with_heap(|own| own.usable_bytes(block)).flatten().unwrap_or(0)
}
