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

use crate::linux::{UNCOUNTED, guards};
use crate::{Errno, GuardBy};
use core::ptr;
use freestone_base::ptr as address;
use freestone_base::sync::{AtomicBool, Ordering};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The kernel has markers: the first [`map`] finds out.
static HAS_MARKERS: AtomicBool = AtomicBool::new(false);

/// How pages are closed on this kernel.
fn by() -> GuardBy {
    if HAS_MARKERS.load(Ordering::Relaxed) { GuardBy::Marker } else { GuardBy::Rights }
}

/// Maps `bytes`, a multiple of the OS page, all closed, where the kernel likes. `None` without memory or address space for it.
#[must_use]
pub fn map(bytes: usize) -> Option<*mut u8> {
    let flags = MapFlags::PRIVATE | UNCOUNTED;
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }.ok()?;
    address::expose(at);
    for by in [GuardBy::Marker, GuardBy::Rights] {
        // SAFETY: the mapping was just made, and holds nothing.
        if unsafe { guards::close(at.cast(), bytes, by) }.is_ok() {
            HAS_MARKERS.store(by == GuardBy::Marker, Ordering::Relaxed);
            return Some(at.cast());
        }
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
    // SAFETY: the range lies in a mapping of `map` (this function's contract), and closed pages hold nothing.
    unsafe { guards::open(at, bytes, by()) }
}

/// Closes whole OS pages, open or closed, and gives their memory back.
///
/// # Errors
/// [`Errno::NOMEM`] at the limit of mappings; the pages may be open still.
///
/// # Safety
/// - The range lies in one that [`map`] returned, and no code needs its contents.
pub unsafe fn close(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the range lies in a mapping of `map`, and no code needs the contents (this function's contract).
    unsafe { guards::close(at, bytes, by()) }?;
    match by() {
        GuardBy::Marker => Ok(()),
        // SAFETY: as above.
        GuardBy::Rights => unsafe { madvise(at.cast(), bytes, Advice::LinuxDontNeed) }.map_err(Errno::from),
    }
}

#[cfg(test)]
mod tests;
