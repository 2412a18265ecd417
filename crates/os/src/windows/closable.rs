//! Memory whose OS pages are opened and closed: committed and decommitted. An access to a closed one faults, and closing gives its memory back.
#![allow(unsafe_code)]
//!
//! # Safety
//! Only a range that [`map`] returned is opened or closed.

use super::{MEM_COMMIT, MEM_DECOMMIT, MEM_RESERVE, PAGE_NOACCESS, PAGE_READWRITE, VirtualAlloc, VirtualFree, done};
use crate::Errno;
use core::ptr;
use freestone_base::ptr as address;

/// Reserves `bytes`, a multiple of the OS page, all closed. `None` without address space for it.
#[must_use]
pub fn map(bytes: usize) -> Option<*mut u8> {
    // SAFETY: the system places the reservation where nothing is.
    let at = unsafe { VirtualAlloc(ptr::null_mut(), bytes, MEM_RESERVE, PAGE_NOACCESS) };
    if at.is_null() {
        return None;
    }
    address::expose(at);
    Some(at.cast())
}

/// Opens whole OS pages that are closed; they read as zero.
///
/// # Errors
/// [`Errno::NOMEM`] at the system's limit of committed memory; the pages are closed still.
///
/// # Safety
/// - The range lies in one that [`map`] returned.
pub unsafe fn open(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the range lies in a reservation of `map` (this function's contract).
    let got = unsafe { VirtualAlloc(at.cast(), bytes, MEM_COMMIT, PAGE_READWRITE) };
    if got.is_null() { Err(Errno::NOMEM) } else { Ok(()) }
}

/// Closes whole OS pages, open or closed, and gives their memory back.
///
/// # Errors
/// The system's; the pages may be open still.
///
/// # Safety
/// - The range lies in one that [`map`] returned, and no code needs its contents.
pub unsafe fn close(at: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the range lies in a reservation of `map`, and no code needs the contents (this function's contract).
    done(unsafe { VirtualFree(at.cast(), bytes, MEM_DECOMMIT) })
}
