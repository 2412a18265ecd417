//! Copying, filling and searching: by the C library's `memmove`, `memset`, `strlen` and `memchr`, which are as fast as the processor allows, once a
//! constructor has looked them up; before, by `freestone_base::bytes` and by a loop over bytes.
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
type Length = unsafe extern "C" fn(*const u8) -> usize;
type Find = unsafe extern "C" fn(*const u8, c_int, usize) -> *const u8;

/// The C library's `memmove`.
static COPY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The C library's `memset`.
static FILL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The C library's `strlen`.
static LENGTH: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The C library's `memchr`.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

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

/// Bytes of a string, without the zero at its end.
///
/// # Safety
/// - `text` is a string.
pub(crate) unsafe fn length(text: *const u8) -> usize {
    let found = LENGTH.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the bytes up to a zero may be read (this function's contract), and there is one.
        return unsafe { position_by_bytes(text, 0, usize::MAX) };
    }
    // SAFETY: a pointer that is not null is that of `strlen`, which has this type.
    let length: Length = unsafe { transmute::<*mut c_void, Length>(found) };
    // SAFETY: `text` is a string (this function's contract).
    unsafe { length(text) }
}

/// How many bytes precede the first that is `value`; `most` if none of that many is.
///
/// # Safety
/// - The bytes up to that one, or `most` bytes, may be read at `from`.
pub(crate) unsafe fn position(from: *const u8, value: u8, most: usize) -> usize {
    let found = FIND.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: this function's contract is that of `position_by_bytes`.
        return unsafe { position_by_bytes(from, value, most) };
    }
    // SAFETY: a pointer that is not null is that of `memchr`, which has this type.
    let find: Find = unsafe { transmute::<*mut c_void, Find>(found) };
    // SAFETY: the bytes may be read up to the one that is searched for (this function's contract); `memchr` reads none behind it.
    let at = unsafe { find(from, c_int::from(value), most) };
    if at.is_null() { most } else { at.addr() - from.addr() }
}

/// As [`position`], one byte after the other.
///
/// # Safety
/// - As for [`position`].
unsafe fn position_by_bytes(from: *const u8, value: u8, most: usize) -> usize {
    let mut at = 0;
    // SAFETY: no byte before this one is the one that is searched for, so it may be read (this function's contract).
    while at < most && unsafe { from.wrapping_add(at).read_volatile() } != value {
        at += 1;
    }
    at
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
    find(&LENGTH, c"strlen");
    find(&FIND, c"memchr");
}
