//! Explicit heaps for C.
#![allow(unsafe_code)]
//!
//! A `freestone_heap_t` is opaque: a [`Heap`] in a block of the process's own allocator.
//!
//! # Safety
//! Handles are those `freestone_heap_new` returned and `freestone_heap_delete` has not taken; C callers promise that.

use core::alloc::Layout;
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_os::{Errno, process};
use heap::{Heap, door};

fn fail(errno: Errno) -> *mut c_void {
    process::set_errno(errno);
    ptr::null_mut()
}

/// A new heap; null and `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_heap_new() -> *mut Heap {
    // SAFETY: the promise about the heap's end is the one documented for `freestone_heap_delete`.
    let heap = unsafe { Heap::new() };
    let place: *mut Heap = door::allocate(size_of::<Heap>()).cast();
    match (heap, place.is_null()) {
        (Some(heap), false) => {
            // SAFETY: the block is large enough and 16-byte aligned.
            unsafe { place.write(heap) };
            place
        }
        (_, place_is_null) => {
            if !place_is_null {
                // SAFETY: allocated above, used by nobody.
                unsafe { door::free(place.cast()) };
            }
            fail(Errno::NOMEM).cast()
        }
    }
}

/// Lets `heap` have at most `bytes`, in whole pages of 64 KiB; 0: as much as there is. 0, or -1 and `EINVAL` if it has more already, or
/// that is less than a page.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_set_limit(heap: *mut Heap, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    let set = unsafe { (*heap).set_limit((bytes != 0).then_some(bytes)) };
    if set.is_err() {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    0
}

/// Ends a heap and the life of every block of it at once; null is nothing.
///
/// # Safety
/// - See the module header; nobody uses a block of the heap any more, or is freeing one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_delete(heap: *mut Heap) {
    if heap.is_null() {
        return;
    }
    // SAFETY: the caller's promise; the handle was written by `freestone_heap_new`.
    unsafe {
        ptr::drop_in_place(heap);
        door::free(heap.cast());
    }
}

/// `size` bytes from `heap`, aligned to 16; null and `ENOMEM` when memory runs out.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_malloc(heap: *mut Heap, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { freestone_heap_aligned_alloc(heap, 1, size) }
}

/// `count * size` zero bytes from `heap`; null and `ENOMEM` when memory runs out or the product overflows.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_calloc(heap: *mut Heap, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else { return fail(Errno::NOMEM) };
    // SAFETY: the caller's promise; the block holds that much.
    unsafe {
        let block = freestone_heap_malloc(heap, bytes);
        if !block.is_null() {
            block.cast::<u8>().write_bytes(0, bytes);
        }
        block
    }
}

/// `size` bytes from `heap`, aligned to `align`; null and `EINVAL` if that is not a power of two, `ENOMEM` when memory runs out.
///
/// # Safety
/// - See the module header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_aligned_alloc(heap: *mut Heap, align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return fail(Errno::INVAL);
    }
    let Ok(layout) = Layout::from_size_align(size, align) else { return fail(Errno::NOMEM) };
    // SAFETY: the caller's promise.
    match unsafe { (*heap).allocate(layout) } {
        Some(block) => block.as_ptr().cast(),
        None => fail(Errno::NOMEM),
    }
}

/// Makes a block of `heap` hold `size` bytes, as `realloc`; null is a new block, size 0 frees.
///
/// # Safety
/// - See the module header; `block` is null or a live block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_realloc(heap: *mut Heap, block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise, for all of the body.
    unsafe {
        let Some(old) = NonNull::new(block.cast::<u8>()) else { return freestone_heap_malloc(heap, size) };
        if size == 0 {
            door::free(old.as_ptr());
            return ptr::null_mut();
        }
        let usable = door::usable_size(old.as_ptr());
        if usable == 0 {
            // Named already: the policy is to go on.
            return fail(Errno::INVAL);
        }
        if size <= usable && size >= usable / 2 {
            return block;
        }
        let Ok(layout) = Layout::from_size_align(usable, 1) else { return fail(Errno::NOMEM) };
        match (*heap).reallocate(old, layout, size) {
            Some(moved) => moved.as_ptr().cast(),
            None => fail(Errno::NOMEM),
        }
    }
}
