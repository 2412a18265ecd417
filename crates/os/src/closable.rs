//! A mapping whose OS pages are opened and closed: an access to a closed one faults, and closing gives its memory back.
#![allow(unsafe_code)]
//!
//! ```text
//!           map                open
//!  nothing ─────▶ closed ─────────────▶ open, reads as zero
//!                    ▲                    │
//!                    └────── close ───────┘
//! ```
//!
//! A kernel of 6.13 or later marks pages as guards, which splits no mapping; an older one changes their protection.
//!
//! # Safety
//! Only a range that [`map`] returned is opened or closed.

use crate::Errno;
use crate::linux::guards;
use core::ptr;
use freestone_base::ptr as address;
use freestone_base::sync::{AtomicU8, Ordering};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};

/// How pages are closed on this kernel; found out by the first [`map`].
static WAY: AtomicU8 = AtomicU8::new(BY_PROTECTION);
/// By their protection.
const BY_PROTECTION: u8 = 0;
/// By markers ([`guards`]).
const BY_GUARDS: u8 = 1;

/// Maps `bytes`, a multiple of the OS page, all closed, where the kernel likes. `None` without memory or address space for it.
#[must_use]
pub fn map(bytes: usize) -> Option<*mut u8> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }.ok()?;
    address::expose(at);
    // SAFETY: the mapping was just made, and holds nothing.
    if unsafe { guards::install(at.cast(), bytes) }.is_ok() {
        WAY.store(BY_GUARDS, Ordering::Relaxed);
        return Some(at.cast());
    }
    // SAFETY: as above.
    if unsafe { mprotect(at, bytes, MprotectFlags::empty()) }.is_ok() {
        return Some(at.cast());
    }
    // SAFETY: the mapping was made above, and no other code has its address.
    let _ = unsafe { munmap(at, bytes) };
    None
}

/// Opens whole OS pages that are closed.
///
/// # Errors
/// [`Errno::NOMEM`] at the limit of mappings; the pages are closed still.
///
/// # Safety
/// - The range lies in one that [`map`] returned.
pub unsafe fn open(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    if WAY.load(Ordering::Relaxed) == BY_GUARDS {
        // SAFETY: closed pages hold nothing.
        return unsafe { guards::remove(at, bytes) };
    }
    // SAFETY: as above.
    unsafe { mprotect(at.cast(), bytes, MprotectFlags::READ | MprotectFlags::WRITE) }.map_err(Errno::from)
}

/// Closes whole OS pages, open or closed, and gives their memory back.
///
/// # Errors
/// [`Errno::NOMEM`] at the limit of mappings; the pages may be open still.
///
/// # Safety
/// - The range lies in one that [`map`] returned, and no code needs its contents.
pub unsafe fn close(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    if WAY.load(Ordering::Relaxed) == BY_GUARDS {
        // SAFETY: no code needs the contents (this function's contract).
        return unsafe { guards::install(at, bytes) };
    }
    // SAFETY: as above.
    unsafe { mprotect(at.cast(), bytes, MprotectFlags::empty()) }?;
    // SAFETY: as above.
    unsafe { madvise(at.cast(), bytes, Advice::LinuxDontNeed) }.map_err(Errno::from)
}

#[cfg(test)]
mod tests;
