//! Making every access to a range fault: by markers in page tables (Linux 6.13), or by access rights.
#![allow(unsafe_code)]
//!
//! For `Os::guard` and for `closable`: both say by which means. An OS page with a marker has no memory. The markers stay when the range is purged, and a forked child has them, too; unmapping the range or
//! moving it takes them away. Neither the C library's headers nor the crates used here name the two kinds of advice everywhere. Under Miri, which has no
//! OS pages, what is closed only loses its contents.
//!
//! qemu in user mode (7.2) ignores advice that it does not know, and says that it was taken: the range would stay accessible, with its contents. So an advice
//! that no kernel knows is given first, once. Whoever takes that, too, puts no markers.
//!
//! # Safety
//! As for [`Os::guard`](crate::Os::guard) and [`Os::unguard`](crate::Os::unguard).

use crate::linux::answer::Answer;
use crate::{Errno, GuardBy, process};
use core::ffi::c_int;
use rustix::mm::{MprotectFlags, mprotect};

/// The advice that puts markers.
const MADV_GUARD_INSTALL: c_int = 102;

/// The advice that removes them.
const MADV_GUARD_REMOVE: c_int = 103;

/// An advice that no kernel knows.
const UNKNOWN: c_int = -1;

/// Whether advice that is not known is refused.
pub(super) static REFUSES_UNKNOWN: Answer = Answer::new();

/// Whether the kernel has put markers: then it refuses to only where memory is locked (`mlock`).
static HAS_MARKERS: Answer = Answer::new();

/// Makes every access to a range fault. By markers, what it contained is gone.
///
/// # Errors
/// The kernel's. All of the range is accessible then, and what it contained may be gone.
///
/// # Safety
/// - The range is committed, made of whole OS pages, and no code uses it.
pub(crate) unsafe fn close(at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
    if cfg!(miri) {
        // SAFETY: no code uses the range, which is committed (this function's contract).
        unsafe { at.write_bytes(0, bytes) };
        return Ok(());
    }
    // SAFETY: the range is committed (this function's contract).
    if by == GuardBy::Marker && unsafe { !refuses_unknown(at, bytes) } {
        return Err(Errno::INVAL);
    }
    // SAFETY: no code uses the range, which is committed (this function's contract).
    let Err(errno) = (unsafe { close_each(at, bytes, by) }) else {
        if by == GuardBy::Marker {
            HAS_MARKERS.set(true);
        }
        return Ok(());
    };
    // The kernel closes one mapping after the other, and `mlock` of a part of the range makes several of one.
    // SAFETY: the range is committed (this function's contract).
    let _ = unsafe { open(at, bytes, by) };
    let is_locked = by == GuardBy::Marker && errno == Errno::INVAL && HAS_MARKERS.get() == Some(true);
    Err(if is_locked { Errno::AGAIN } else { errno })
}

/// As [`close`], but that the start of the range may stay closed if the kernel refuses.
///
/// # Safety
/// - As for [`close`].
unsafe fn close_each(at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
    match by {
        // SAFETY: no code uses the range, which is committed (this function's contract).
        GuardBy::Marker => unsafe { advise(at, bytes, MADV_GUARD_INSTALL) },
        // SAFETY: as above.
        GuardBy::Rights => unsafe { mprotect(at.cast(), bytes, MprotectFlags::empty()) }.map_err(Errno::from),
    }
}

/// Makes a range accessible that was closed by these means.
///
/// # Safety
/// - The range is committed and made of whole OS pages.
pub(crate) unsafe fn open(at: *mut u8, bytes: usize, by: GuardBy) -> Result<(), Errno> {
    if cfg!(miri) {
        return Ok(());
    }
    match by {
        // SAFETY: memory without a marker does not change.
        GuardBy::Marker => unsafe { advise(at, bytes, MADV_GUARD_REMOVE) },
        GuardBy::Rights => {
            let all = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: the range is committed; memory that is accessible does not change.
            unsafe { mprotect(at.cast(), bytes, all) }.map_err(Errno::from)
        }
    }
}

/// Whether advice that is not known is refused, as tried on a range the first time.
///
/// # Safety
/// - The range is committed.
#[inline]
unsafe fn refuses_unknown(at: *mut u8, bytes: usize) -> bool {
    REFUSES_UNKNOWN.get().unwrap_or_else(|| {
        // SAFETY: the range is committed, and what no kernel knows changes nothing.
        let refuses = unsafe { advise(at, bytes, UNKNOWN) }.is_err();
        REFUSES_UNKNOWN.set(refuses);
        refuses
    })
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
