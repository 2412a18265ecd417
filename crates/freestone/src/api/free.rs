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
use crate::thread::current::{self, Heap};

/// Frees a block; null is nothing.
///
/// # Safety
/// - See the module header.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    let heap = current::get();
    // SAFETY: a page with this heap's tag is this thread's, and the entry says its class.
    unsafe {
        if let Some(entry) = heap.view().entry(block.addr())
            && let Some(class) = entry.class_if_owned(heap.tag())
        {
            if heap.push(class, block) {
                free_full(heap, class);
            }
            return;
        }
        free_slow(block);
    }
}

/// Frees a small block of a known class without asking whose it is: flushing the bin finds out.
///
/// # Safety
/// - See the module header; the block is of `class`.
#[inline(always)]
pub unsafe fn free_sized(block: *mut u8, class: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if !current::get().try_push(class, block) {
            free_sized_slow(block, class);
        }
    }
}

/// Looks at a bin that has just run out of room.
#[cold]
#[inline(never)]
unsafe fn free_full(heap: &Heap, class: usize) {
    // SAFETY: the caller's heap is this thread's and alive, for it owned the block.
    unsafe { heap.overflow(class) }
}

/// Frees a block of a known class when the bin had no room, or the thread has no heap.
#[cold]
#[inline(never)]
unsafe fn free_sized_slow(block: *mut u8, class: usize) {
    // SAFETY: the caller's promise; the heap is this thread's for the moment.
    let freed = global::with_heap(|heap| unsafe { heap.push_slow(class, block) });
    if freed.is_none() {
        // SAFETY: nobody uses the block any more, says the module header.
        unsafe { global::keep_freed(block) };
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
    let freed = global::with_heap(|heap| unsafe { heap.free(block) });
    if freed.is_none() {
        // SAFETY: nobody uses the block any more, says the module header.
        unsafe { global::keep_freed(block) };
    }
}

/// Bytes that a block may be used to its end for; 0 for null. An invalid pointer is reported, and its answer is 0.
///
/// # Safety
/// - `block` is null or was returned by this allocator and not freed.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    match current::get().view().small_class(block.addr()) {
        Some(class) => block_bytes(class),
        // SAFETY: the caller's promise.
        None => unsafe { usable_size_slow(block) },
    }
}

/// # Safety
/// - As for [`usable_size`].
#[cold]
#[inline(never)]
unsafe fn usable_size_slow(block: *mut u8) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    global::with_heap(|heap| unsafe { heap.usable_bytes(block) }).flatten().unwrap_or(0)
}
