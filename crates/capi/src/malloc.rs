//! The `malloc` family.
#![allow(unsafe_code)]
//!
//! `malloc` and `free` are the library's hot paths: `api`'s functions, inlined. The others check their arguments and call them.
//! Where standards leave a choice, semantics are glibc's: `realloc(p, 0)` frees and returns null; `malloc(0)` returns a block of its own.
//!
//! glibc exports its functions under other names as well: `cfree`, which old programs call, and `__libc_malloc` and its kin, which libraries that wrap `malloc`
//! call. Such a block may come to `free`, and one of `malloc` to them. So the shared library has these names, too: `build.rs` has the linker define them.
//! The archive has none: a program that is linked statically has the C library's.
//!
//! # Safety
//! A **live block** is one that a function here returned and no call has freed. Functions that take a block rely on C programs to pass such a
//! one; where `api` detects that it is none, it reports that.

use core::ffi::{c_int, c_void};
use core::ptr;
use freestone_os::{Errno, process};
use heap::door;

/// Matches the other names that glibc has, in the list of what the linker exports (`operators::exports`).
#[cfg(target_env = "gnu")]
#[unsafe(export_name = "_[_]libc_*")]
static OTHER_NAMES: u8 = 0;

/// The same for another one.
#[cfg(target_env = "gnu")]
#[unsafe(export_name = "cfre[e]")]
static CFREE: u8 = 0;

fn fail(errno: Errno) -> *mut c_void {
    process::set_errno(errno);
    ptr::null_mut()
}

/// Allocates `size` bytes aligned to 16. Null and `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    door::allocate(size).cast()
}

/// Frees a block; null does nothing. Does not change `errno`.
///
/// # Safety
/// - `block` is null or a live block that no code uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: null or a live block that no code uses any more (this function's contract).
    unsafe { door::free(block.cast()) }
}

/// Allocates `count * size` zero bytes. Null and `ENOMEM` when memory runs out or the product overflows.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: 1 is a power of two.
        Some(bytes) => unsafe { door::allocate_zeroed(bytes, 1) }.cast(),
        None => fail(Errno::NOMEM),
    }
}

/// Resizes a block to `size` bytes. Null and `ENOMEM` when memory runs out: the block is unchanged. A null block allocates; size 0 frees.
///
/// # Safety
/// - `block` is null or a live block; it is not used again unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return door::allocate(size).cast();
    }
    if size == 0 {
        // SAFETY: the block is live, and is not used again (this function's contract).
        unsafe { door::free(block.cast()) };
        return ptr::null_mut();
    }
    // SAFETY: the block is live, and is not used again if it moves (this function's contract).
    unsafe { door::reallocate(block.cast(), size, 1) }.cast()
}

/// Resizes a block to `count * size` bytes, as [`realloc`]. Null and `ENOMEM` also when the product overflows.
///
/// # Safety
/// - As for [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: this function's contract is that of `realloc`.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => fail(Errno::NOMEM),
    }
}

/// Allocates `size` bytes aligned to `align`, which is rounded up to a power of two, as in glibc. Null and `EINVAL` if no power of two is
/// that large, null and `ENOMEM` when memory runs out.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    allocate_aligned(align, size)
}

/// What `memalign` does, for those here that do the same: a program may have a `memalign` of its own.
fn allocate_aligned(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        // SAFETY: `align` is a power of two: the next one.
        Some(align) => unsafe { door::allocate_aligned(size, align) }.cast(),
        None => fail(Errno::INVAL),
    }
}

/// As [`memalign`]: glibc up to 2.37 rounds up the alignments that C leaves undefined, and so does this.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    allocate_aligned(align, size)
}

/// Stores a block of `size` bytes aligned to `align` in `*block` and returns 0. Returns `EINVAL` if `align` is not a power of two and
/// a multiple of a pointer's size, `ENOMEM` when memory runs out, which `errno` then says as well, as with glibc and musl; `*block` is then
/// unchanged.
///
/// # Safety
/// - `block` points to a writable pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return Errno::INVAL.0;
    }
    // SAFETY: `align` is a power of two: tested above.
    let got = unsafe { door::allocate_aligned(size, align) };
    if got.is_null() {
        return Errno::NOMEM.0;
    }
    // SAFETY: `block` points to a writable pointer (this function's contract).
    unsafe { block.write(got.cast()) };
    0
}

/// Allocates `size` bytes aligned to the OS page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the size of an OS page is a power of two.
    unsafe { door::allocate_aligned(size, process::os_page_bytes()) }.cast()
}

/// Allocates `size` bytes, rounded up to whole OS pages and aligned to them.
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
    // SAFETY: null or a live block (this function's contract).
    unsafe { door::usable_size(block.cast()) }
}

/// Frees a block of `size` bytes from `malloc`, `calloc` or `realloc` (C23).
///
/// # Safety
/// - As for [`free`]; `size` is the requested size. (The level `checks` of the option `harden` checks it.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, size: usize) {
    // SAFETY: null or a live block that no code uses any more (this function's contract).
    unsafe { door::free_sized(block.cast(), size) }
}

/// Frees a block of `size` bytes from `aligned_alloc` (C23).
///
/// # Safety
/// - As for [`free`]; `align` and `size` are those of the request. (The level `checks` of the option `harden` checks them.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, align: usize, size: usize) {
    // As `aligned_alloc` rounds it; where it cannot, the block is null.
    let align = align.checked_next_power_of_two().unwrap_or(align);
    // SAFETY: null or a live block that no code uses any more (this function's contract).
    unsafe { door::free_aligned_sized(block.cast(), align, size) }
}
