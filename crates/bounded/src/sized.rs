//! Structures whose first member is their size in bytes: a program compiled with an older or a newer header works with this library.
#![allow(unsafe_code)]
//!
//! ```text
//!  older program   | size | a | b |             reads and writes stop at the program's size
//!  this library    | size | a | b | c |
//!  newer program   | size | a | b | c | d |     d stays as it is; `size` says how much was filled
//! ```
//!
//! # Safety
//! A structure has as many bytes as its first member says: every function here has that contract.

use crate::error::{BAD_STRUCT, FreestoneError, OK};
use core::ffi::c_int;
use core::mem::{MaybeUninit, size_of};

/// A structure of C programs that starts with its size.
///
/// # Safety
/// - The type is `repr(C)`, starts with a `usize`, and is valid with all of its bytes zero.
pub unsafe trait SizedStruct {
    /// Bytes of the structure's first version: a program's is never smaller.
    const LEAST: usize;
}

/// The size that a structure states; 0 if `place` is null.
///
/// # Safety
/// - `place` is null or points to a readable structure that starts with its size.
unsafe fn stated<T>(place: *const T) -> usize {
    // SAFETY: `place` is not null where it is read, and its first member is there whatever its size (this function's contract).
    if place.is_null() { 0 } else { unsafe { place.cast::<usize>().read() } }
}

/// Copies a structure of the caller's; members that its version does not have are zero.
///
/// # Errors
/// The structure is smaller than its first version, or `place` is null.
///
/// # Safety
/// - `place` is null or points to a structure with as many readable bytes as its first member says.
pub unsafe fn read<T: SizedStruct>(place: *const T) -> Result<T, FreestoneError> {
    // SAFETY: this function's contract is that of `stated`.
    let size = unsafe { stated(place) };
    if size < T::LEAST {
        return Err(FreestoneError::bad_struct(size, T::LEAST));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    let bytes = size.min(size_of::<T>());
    // SAFETY: `bytes` are in the caller's structure, whose size is no less, and in the copy, which is another one.
    unsafe { copy.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(place.cast(), bytes) };
    // SAFETY: the type is valid with zero bytes (the trait's contract), and with those that a C program writes into its members: integers and pointers.
    Ok(unsafe { copy.assume_init() })
}

/// Fills as much of the caller's structure as it has room for with what `all` returns for that number of bytes. Returns a code.
///
/// # Safety
/// - `place` is null or points to a structure with as many writable bytes as its first member says.
pub unsafe fn fill<T: SizedStruct>(place: *mut T, all: impl FnOnce(usize) -> T) -> c_int {
    // SAFETY: this function's contract is that of `stated`.
    let size = unsafe { stated(place) };
    if size < T::LEAST {
        return BAD_STRUCT;
    }
    let size = size.min(size_of::<T>());
    let all = all(size);
    // SAFETY: `size` bytes are in `all`, and in the caller's structure, whose size is no less.
    unsafe { place.cast::<u8>().copy_from_nonoverlapping((&raw const all).cast(), size) };
    OK
}

#[cfg(test)]
mod tests;
