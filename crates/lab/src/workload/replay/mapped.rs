//! Memory that no allocator knows.
//!
//! # Safety
//! A mapping is new, and zero; the types that are put there are atomics, for which zero is a value.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// A type for which zero is a value, and which threads may share.
///
/// # Safety
/// - A place of zeros is a value of the type.
pub(super) unsafe trait FromZeros: Sync {}

// SAFETY: zero is a number.
unsafe impl FromZeros for AtomicU64 {}
// SAFETY: as above.
unsafe impl FromZeros for [AtomicU64; 2] {}
// SAFETY: zero is null.
unsafe impl FromZeros for AtomicPtr<u8> {}

/// `n` values of zeros.
///
/// # Errors
/// There is no memory.
pub(super) fn mapped<T: FromZeros>(n: usize) -> Result<&'static [T]> {
    let bytes = n.max(1) * size_of::<T>();
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    // SAFETY: the memory is mapped, aligned to an OS page, zero, and has room for `n` values.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), n) })
}

/// Gives the memory back. No code uses the values any more.
pub(super) fn unmap(values: &'static [AtomicU64]) {
    // SAFETY: `mapped` returned the values, and the caller does not use them again.
    unsafe { libc::munmap(values.as_ptr().cast_mut().cast(), size_of_val(values).max(8)) };
}
