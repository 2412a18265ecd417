//! Markers in page tables that make every access to a range fault (Linux 6.13).
#![allow(unsafe_code)]
//!
//! An OS page with a marker has no memory. The markers stay when the range is purged, and a forked child has them, too; unmapping the range or
//! moving it takes them away. Neither the C library's headers nor the crates used here name the two kinds of advice everywhere.
//!
//! # Safety
//! As for [`Os::guard`](crate::Os::guard) and [`Os::unguard`](crate::Os::unguard); `closable` does the same with mappings of its own.

use crate::{Errno, process};
use core::ffi::c_int;

/// The advice that puts markers.
const MADV_GUARD_INSTALL: c_int = 102;

/// The advice that removes them.
const MADV_GUARD_REMOVE: c_int = 103;

/// Puts a marker on each OS page of a range; what they contained is gone.
///
/// # Safety
/// - The range is committed, made of whole OS pages, and no code uses it.
pub(crate) unsafe fn install(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: no code uses the range.
    unsafe { advise(at, bytes, MADV_GUARD_INSTALL) }
}

/// Removes the markers of a range.
///
/// # Safety
/// - The range is committed and made of whole OS pages.
pub(crate) unsafe fn remove(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: memory without a marker does not change.
    unsafe { advise(at, bytes, MADV_GUARD_REMOVE) }
}

/// Calls `madvise`, and leaves the program's `errno` as it is.
///
/// # Safety
/// - The range is committed, and the advice may be given for it.
unsafe fn advise(at: *mut u8, bytes: usize, advice: c_int) -> Result<(), Errno> {
    let saved = process::errno();
    // SAFETY: the range is committed, and the advice may be given (this function's contract).
    let done = unsafe { libc::madvise(at.cast(), bytes, advice) } == 0;
    let errno = process::errno();
    process::set_errno(saved);
    if done { Ok(()) } else { Err(errno) }
}
