//! Copying and filling: by the C library's `memmove` and `memset`, which are as fast as the processor allows, once a constructor has
//! looked them up; before, by `freestone_base::bytes`.
#![allow(unsafe_code)]
//!
//! `memcpy` copies as `memmove` does: in glibc it is the same code, and a program that copies overlapping stretches gets what it means.
//!
//! # Safety
//! A pointer here is null, or that of the C library's function of that name.

use crate::allocator;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use freestone_base::bytes;
use freestone_base::sync::{AtomicPtr, Ordering};

type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;
type Fill = unsafe extern "C" fn(*mut u8, c_int, usize) -> *mut u8;

/// The C library's `memmove`.
static COPY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The C library's `memset`.
static FILL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Copies `n` bytes, which may overlap. Returns `to`.
///
/// # Safety
/// - That many bytes may be read at `from` and written at `to`.
#[inline(always)]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    let found = COPY.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the bytes may be read and written (this function's contract).
        unsafe { bytes::copy(to, from, n) };
        return to;
    }
    // SAFETY: a pointer that is not null is that of `memmove`, which has this type.
    let copy: Copy = unsafe { transmute::<*mut c_void, Copy>(found) };
    // SAFETY: the bytes may be read and written (this function's contract).
    unsafe { copy(to, from, n) }
}

/// Sets `n` bytes to `value`. Returns `to`.
///
/// # Safety
/// - That many bytes may be written at `to`.
#[inline(always)]
pub(crate) unsafe fn fill(to: *mut u8, value: u8, n: usize) -> *mut u8 {
    let found = FILL.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the bytes may be written (this function's contract).
        unsafe { bytes::fill(to, value, n) };
        return to;
    }
    // SAFETY: a pointer that is not null is that of `memset`, which has this type.
    let fill: Fill = unsafe { transmute::<*mut c_void, Fill>(found) };
    // SAFETY: the bytes may be written (this function's contract).
    unsafe { fill(to, c_int::from(value), n) }
}

/// Looks up the C library's functions when this library is loaded. Later no function needs the loader, which may hold locks then.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array.00000")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        find_all();
    }
    at_load
};

/// Looks up the C library's functions.
pub(crate) fn find_all() {
    let find = |place: &AtomicPtr<c_void>, name: &'static CStr| place.store(allocator::next(name), Ordering::Relaxed);
    find(&COPY, c"memmove");
    find(&FILL, c"memset");
}
