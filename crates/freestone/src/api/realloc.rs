//! Changing a block's size.
#![allow(unsafe_code)]
//!
//! In place if the block's class stays the same or the new size still fills half of it; large blocks grow into the free run behind
//! them and give the tail back when they shrink. Otherwise allocate, copy, free. When that fails the block is as it was.
//!
//! # Safety
//! As for C's `realloc`: `block` was returned by this allocator and is not freed.

use crate::api::alloc::allocate_aligned;
use crate::api::free::{Place, free, locate, wrong};
use crate::api::global;
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, block_bytes};
use core::ptr;

/// A block shrinks in place as long as this part of it stays used.
const SHRINK_SHARE: usize = 2;

/// Makes a block (not null) hold `size` bytes, keeping its contents up to the smaller size, aligned to `align`, a power of two. Null
/// when memory runs out; the block is untouched then.
///
/// # Safety
/// - See the module header.
#[must_use]
pub unsafe fn reallocate(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let usable = match locate(block) {
        Place::Small { class, .. } => block_bytes(class),
        Place::Large { page } => {
            let large = global::with_heap(|heap| {
                // SAFETY: the block starts this run.
                unsafe { (size > SMALL_MAX && heap.resize_large(page, size), heap.large_bytes(page)) }
            });
            match large {
                Some((true, _)) => return block,
                Some((false, bytes)) => bytes,
                None => return ptr::null_mut(),
            }
        }
        Place::Wrong(what) => {
            wrong(what, block);
            return ptr::null_mut();
        }
    };
    if size <= usable && size.max(GRANULE_BYTES) >= usable / SHRINK_SHARE && usable <= SMALL_MAX {
        return block;
    }
    // SAFETY: the caller's promise.
    unsafe { move_to(block, usable, size, align) }
}

/// Makes a large block hold `size` bytes where it is; `false` if it is no large block, or cannot.
///
/// # Safety
/// - See the module header.
#[must_use]
pub unsafe fn resize_in_place(block: *mut u8, size: usize) -> bool {
    match locate(block) {
        // SAFETY: the block starts this run.
        Place::Large { page } => global::with_heap(|heap| unsafe { heap.resize_large(page, size) }).unwrap_or(false),
        _ => false,
    }
}

/// Allocates, copies, frees.
unsafe fn move_to(block: *mut u8, usable: usize, size: usize, align: usize) -> *mut u8 {
    let moved = allocate_aligned(size, align);
    if !moved.is_null() {
        // SAFETY: both blocks hold that much and do not overlap; the old one is the caller's to free.
        unsafe {
            moved.copy_from_nonoverlapping(block, usable.min(size));
            free(block);
        }
    }
    moved
}
