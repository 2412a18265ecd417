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
//! As for C's `free`: `block` was returned by this allocator, is not freed, and no code uses it any more. A violation that can be seen is
//! reported (`misuse`).

use crate::api::local_heap::{keep_freed, with_heap};
use crate::size_class::block_bytes;
use crate::thread::current::{self, Heap};

/// Frees a block; does nothing for null.
///
/// # Safety
/// - `block` is null, or was returned by this allocator and is not freed; no code uses it any more.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    let heap = current::get();
    if let Some(entry) = heap.view().entry(block.addr())
        && let Some(class) = entry.class_if_owned(heap.tag())
    {
        // SAFETY: the entry of the block's page has this heap's generation: the block is of its `class`, and the heap is not an empty one.
        // No code uses the block any more (this function's contract).
        unsafe {
            if heap.push(class, block) {
                free_full(heap, class);
            }
        }
        return;
    }
    // SAFETY: this function's contract is that of `free_slow`.
    unsafe { free_slow(block) };
}

/// Frees a small block of a known class without looking up its owner: flushing the bin does that.
///
/// # Safety
/// - `block` was returned by this allocator for a size of `class`, and is not freed; no code uses it any more.
#[inline(always)]
pub(crate) unsafe fn free_sized(block: *mut u8, class: usize) {
    // SAFETY: the block is one of `class` that no code uses any more (this function's contract).
    unsafe {
        if !current::get().try_push(class, block) {
            free_sized_slow(block, class);
        }
    }
}

/// Flushes a bin that has just run out of room.
///
/// # Safety
/// - The heap is alive, and this thread's.
#[cold]
#[inline(never)]
unsafe fn free_full(heap: &Heap, class: usize) {
    // SAFETY: the heap is alive and this thread's (this function's contract).
    unsafe { heap.overflow(class) }
}

/// Frees a block of a known class when the bin had no room, or the thread has no heap.
///
/// # Safety
/// - As for [`free_sized`].
#[cold]
#[inline(never)]
unsafe fn free_sized_slow(block: *mut u8, class: usize) {
    // SAFETY: the block is one of `class` that no code uses any more; `with_heap` passes a heap that is alive and this thread's.
    let freed = with_heap(|heap| unsafe { heap.push_slow(class, block) });
    if freed.is_none() {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { keep_freed(block) };
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
    // SAFETY: the block is live and no code uses it any more (this function's contract); `with_heap` passes a heap that is alive and this
    // thread's.
    let freed = with_heap(|heap| unsafe { heap.free(block) });
    if freed.is_none() {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { keep_freed(block) };
    }
}

/// Bytes of a block, all of which may be used; 0 for null. An invalid pointer is reported, and the answer is 0.
///
/// # Safety
/// - `block` is null, or was returned by this allocator and is not freed.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    match current::get().view().small_class(block.addr()) {
        Some(class) => block_bytes(class),
        // SAFETY: this function's contract is that of `usable_size_slow`.
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
    // SAFETY: the block is not freed (this function's contract); `with_heap` passes a heap that is alive and this thread's.
    with_heap(|heap| unsafe { heap.usable_bytes(block) }).flatten().unwrap_or(0)
}
