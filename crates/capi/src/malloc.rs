//! The `malloc` family.
#![allow(unsafe_code)]
//!
//! `malloc` and `free` are the hot paths of the whole library: they are the heap's, inlined. The rest checks its arguments and passes on.
//! Semantics are glibc's where standards leave a choice: `realloc(p, 0)` frees and returns null; `malloc(0)` is a unique pointer.
//!
//! # Safety
//! The callers are C programs: every function trusts its pointers as C does, and names what it can see is wrong.

use core::ffi::{c_int, c_void};
use core::ptr;
use freestone_os::{Errno, process};
use heap::door;

fn fail(errno: Errno) -> *mut c_void {
    process::set_errno(errno);
    ptr::null_mut()
}

/// `size` bytes aligned to 16; null and `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    door::allocate(size).cast()
}

/// Frees a block; null is nothing. `errno` is kept.
///
/// # Safety
/// - `block` is null or a live block, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { door::free(block.cast()) }
}

/// `count * size` zero bytes; null and `ENOMEM` when memory runs out or the product overflows.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: 1 is a power of two.
        Some(bytes) => unsafe { door::allocate_zeroed(bytes, 1) }.cast(),
        None => fail(Errno::NOMEM),
    }
}

/// Makes a block hold `size` bytes. Null and `ENOMEM` when memory runs out: the block is untouched then. Size 0 frees.
///
/// # Safety
/// - `block` is null or a live block; it is not used again unless the answer is null and `size` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(size);
    }
    // SAFETY: the caller's promise.
    unsafe {
        if size == 0 {
            free(block);
            return ptr::null_mut();
        }
        door::reallocate(block.cast(), size, 1).cast()
    }
}

/// [`realloc`] to `count * size` bytes; null and `ENOMEM` also when the product overflows.
///
/// # Safety
/// - As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => fail(Errno::NOMEM),
    }
}

/// `size` bytes aligned to `align`, which is rounded up to a power of two, as glibc does. Null and `EINVAL` if there is none, null and
/// `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        // SAFETY: `align` is a power of two: the next one.
        Some(align) => unsafe { door::allocate_aligned(size, align) }.cast(),
        None => fail(Errno::INVAL),
    }
}

/// As [`memalign`]: the alignments that C leaves undefined, glibc (to 2.37) rounds up.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

/// Stores a block of `size` bytes aligned to `align` in `*block` and returns 0. Returns `EINVAL` if `align` is not a power of two and
/// multiple of a pointer's size, `ENOMEM` when memory runs out; `*block` and `errno` are untouched then.
///
/// # Safety
/// - `block` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return Errno::INVAL.0;
    }
    let before = process::errno();
    // SAFETY: `align` is a power of two: tested above.
    let got = unsafe { door::allocate_aligned(size, align) };
    if got.is_null() {
        process::set_errno(before);
        return Errno::NOMEM.0;
    }
    // SAFETY: the caller's promise.
    unsafe { block.write(got.cast()) };
    0
}

/// `size` bytes aligned to the OS page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the size of an OS page is a power of two.
    unsafe { door::allocate_aligned(size, process::os_page_bytes()) }.cast()
}

/// `size` bytes rounded up to OS pages, and aligned to them.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = process::os_page_bytes();
    match freestone_base::align::checked_up(size.max(1), page) {
        // SAFETY: the size of an OS page is a power of two.
        Some(bytes) => unsafe { door::allocate_aligned(bytes, page) }.cast(),
        None => fail(Errno::NOMEM),
    }
}

/// Bytes of a block that may be used; 0 for null.
///
/// # Safety
/// - `block` is null or a live block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe { door::usable_size(block.cast()) }
}

/// Frees a block of `size` bytes from `malloc`, `calloc` or `realloc` (C23).
///
/// # Safety
/// - As for [`free`]; `size` is what was asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { door::free(block.cast()) }
}

/// Frees a block of `size` bytes from `aligned_alloc` (C23).
///
/// # Safety
/// - As for [`free`]; `align` and `size` are what was asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { door::free(block.cast()) }
}
