//! Explicit heaps, for C.
#![allow(unsafe_code)]
//!
//! A `freestone_heap_t` is opaque: a [`Heap`] in a block of the process's own allocator.
//!
//! # Safety
//! A **live handle** is one that `freestone_heap_new` returned and `freestone_heap_delete` has not ended.

use crate::control::text;
use core::alloc::Layout;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use freestone_os::{Errno, process};
use heap::Heap;
use heap::door;
use heap::options::Harden;

fn fail(errno: Errno) -> *mut c_void {
    process::set_errno(errno);
    ptr::null_mut()
}

/// Creates a heap. Null and `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn freestone_heap_new() -> *mut Heap {
    create(Harden::Off)
}

/// Creates a heap hardened as the word `level` of the option `harden` says, or as the process is if that is more. Null and `EINVAL` if there is no such
/// level, `ENOMEM` when memory runs out.
///
/// # Safety
/// - `level` is null or a C string. Null is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_new_hardened(level: *const c_char) -> *mut Heap {
    // SAFETY: `level` is null or a C string (this function's contract), and outlives this call.
    match unsafe { text(level) }.and_then(|level| level.parse().ok()) {
        Some(level) => create(level),
        None => fail(Errno::INVAL).cast(),
    }
}

fn create(level: Harden) -> *mut Heap {
    // SAFETY: what `Heap::hardened` demands of the heap's end, the contract of `freestone_heap_delete` demands of its callers.
    let Some(heap) = (unsafe { Heap::hardened(level) }) else { return fail(Errno::NOMEM).cast() };
    let place: *mut Heap = door::allocate(size_of::<Heap>()).cast();
    if place.is_null() {
        return fail(Errno::NOMEM).cast();
    }
    // SAFETY: the block was just allocated: large enough, and aligned to 16.
    unsafe { place.write(heap) };
    place
}

/// Limits `heap` to `bytes`, in whole pages of 64 KiB; 0 removes the limit. Returns 0; -1 and `EINVAL` if the heap has more already, or `bytes` is
/// less than a page.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_set_limit(heap: *mut Heap, bytes: usize) -> c_int {
    // SAFETY: the handle is live.
    let heap = unsafe { &*heap };
    if heap.set_limit((bytes != 0).then_some(bytes)).is_err() {
        process::set_errno(Errno::INVAL);
        return -1;
    }
    0
}

/// Ends a heap and every block of it at once; null does nothing.
///
/// # Safety
/// - `heap` is null or a live handle; no code uses a block of the heap any more, and no `free` of one is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_delete(heap: *mut Heap) {
    if heap.is_null() {
        return;
    }
    // SAFETY: the handle is live, so `freestone_heap_new` wrote a heap there; this call ends the handle.
    unsafe { ptr::drop_in_place(heap) };
    // SAFETY: `freestone_heap_new` allocated the block, and the heap in it has ended.
    unsafe { door::free(heap.cast()) };
}

/// Allocates `size` bytes of `heap`, aligned to 16. Null and `ENOMEM` when memory runs out.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_malloc(heap: *mut Heap, size: usize) -> *mut c_void {
    // SAFETY: the handle is live.
    unsafe { freestone_heap_aligned_alloc(heap, 1, size) }
}

/// Allocates `count * size` zero bytes of `heap`. Null and `ENOMEM` when memory runs out or the product overflows.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_calloc(heap: *mut Heap, count: usize, size: usize) -> *mut c_void {
    let layout = count.checked_mul(size).and_then(|bytes| Layout::from_size_align(bytes, 1).ok());
    let Some(layout) = layout else { return fail(Errno::NOMEM) };
    // SAFETY: the handle is live.
    let heap = unsafe { &*heap };
    heap.allocate_zeroed(layout).map_or_else(|| fail(Errno::NOMEM), |block| block.as_ptr().cast())
}

/// Allocates `size` bytes of `heap`, aligned to `align`. Null and `EINVAL` if that is not a power of two, `ENOMEM` when memory runs out.
///
/// # Safety
/// - `heap` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_aligned_alloc(heap: *mut Heap, align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return fail(Errno::INVAL);
    }
    let Ok(layout) = Layout::from_size_align(size, align) else { return fail(Errno::NOMEM) };
    // SAFETY: the handle is live.
    let heap = unsafe { &*heap };
    match heap.allocate(layout) {
        Some(block) => block.as_ptr().cast(),
        None => fail(Errno::NOMEM),
    }
}

/// Resizes a block of `heap` to `size` bytes, as `realloc` does. A null block allocates; size 0 frees.
///
/// # Safety
/// - `heap` is a live handle; `block` is null or a live block, and is not used again unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn freestone_heap_realloc(heap: *mut Heap, block: *mut c_void, size: usize) -> *mut c_void {
    let Some(old) = NonNull::new(block.cast::<u8>()) else {
        // SAFETY: the handle is live.
        return unsafe { freestone_heap_malloc(heap, size) };
    };
    if size == 0 {
        // SAFETY: the block is live, and is not used again (this function's contract).
        unsafe { door::free(old.as_ptr()) };
        return ptr::null_mut();
    }
    // SAFETY: the block is live.
    let Some(usable) = (unsafe { door::try_usable_size(old.as_ptr()) }) else {
        // The pointer is invalid. That was reported, and the option `misuse` says to continue.
        return fail(Errno::INVAL);
    };
    if size <= usable && size >= usable / 2 {
        return block;
    }
    let Ok(layout) = Layout::from_size_align(usable, 1) else { return fail(Errno::NOMEM) };
    // SAFETY: the handle is live.
    let heap = unsafe { &*heap };
    // SAFETY: the block is live, has `usable` bytes, and is not used again if it moves (this function's contract).
    match unsafe { heap.reallocate(old, layout, size) } {
        Some(moved) => moved.as_ptr().cast(),
        None => fail(Errno::NOMEM),
    }
}
