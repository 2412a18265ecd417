//! Changing a block's size: `thread::any` does it, with this thread's heap.
#![allow(unsafe_code)]
//!
//! # Safety
//! As for C's `realloc`: `block` was returned by this allocator and is not freed.

use crate::api::alloc::or_enomem;
use crate::api::{global, pressure};
use crate::thread::any::{Place, locate};
use core::ptr;

/// Makes a block, not null, hold `size` bytes, keeping its contents up to the smaller size, aligned to `align`, a power of two. Null and
/// `ENOMEM` when memory runs out; the block is untouched then.
///
/// # Safety
/// - See the module header.
#[must_use]
pub unsafe fn reallocate(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller's promise; a block that could not be resized is as it was.
    let attempt =
        || global::with_heap(|heap| unsafe { heap.reallocate(block, size, align) }).unwrap_or(ptr::null_mut());
    // A wrong pointer has been named, and stays wrong.
    let is_short = |moved: &*mut u8| moved.is_null() && !matches!(locate(global::central(), block), Place::Wrong(_));
    or_enomem(pressure::watch(attempt(), is_short, attempt))
}

/// Makes a large block hold `size` bytes where it is; `false` if it is no large block, or cannot.
///
/// # Safety
/// - See the module header.
#[must_use]
pub unsafe fn resize_in_place(block: *mut u8, size: usize) -> bool {
    // SAFETY: the caller's promise.
    global::with_heap(|heap| unsafe { heap.resize_in_place(block, size) }).unwrap_or(false)
}
