//! Moving memory without copying it.
#![allow(unsafe_code)]
//!
//! ```text
//!            munmap(to)           mremap(from, MAYMOVE | DONTUNMAP, near to)
//!  from  ▓▓▓▓▓▓▓ │ ▓▓▓▓▓▓▓                 │ ░░░░░░░      mapped, empty
//!  to    ░░░░░░░ │ (hole)                  │ ▓▓▓▓▓▓▓
//! ```
//!
//! `mremap` with `MREMAP_FIXED` would do both in one call, but what it leaves behind when it fails depends on the kernel: up to Linux 6.14
//! it unmaps the target and then refuses a source that consists of several mappings; from 6.17 on it moves such a source piece by
//! piece, and after an error in the middle the caller cannot tell which pieces have moved. Without that flag all kernels refuse such a source
//! before they move anything, and the target has been unmapped here, so its state is known.
//!
//! The address is then only a hint, which the kernel follows if nothing is mapped there. If another thread maps something there in between, the
//! kernel moves the memory elsewhere, and it is copied back. So does qemu (7.2, user mode) each time, and it unmaps the source.
//!
//! A source that is refused consists of several mappings: it got advice for the huge pages that lie wholly inside it, or it was moved before, and has
//! grown since into memory beside the mapping that was moved. Where a mapping ends is not known, so the source is moved in pieces: if one is refused, its
//! first half is tried, and behind a piece that was not refused twice as much. Pieces of one mapping become one again at the target. A refused piece
//! that is shorter than [`PIECE_LEAST`], or than an eighth of the source and [`LONGEST_COPIED`], is copied, with more of the run than the program asked for: so not by
//! `memcpy`, which may be a checked one.
//!
//! # Safety
//! As for [`Os::relocate`](crate::Os::relocate).

use crate::linux::Linux;
use crate::{Errno, NotMoved, Os, Target, process};
use core::ffi::c_int;
use freestone_base::units::PAGE_BYTES;
use freestone_base::{align, bytes};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// The flags of `mremap`, which not every C library's headers name.
const MREMAP_MAYMOVE: c_int = 1;
/// See [`MREMAP_MAYMOVE`].
const MREMAP_DONTUNMAP: c_int = 4;

/// Pieces of at most so many bytes are not halved: 2 MiB, a huge page of most processors, where pieces are cut if they can be. Shorter ones would be
/// mappings of their own, whose number has a limit.
const PIECE_LEAST: usize = 2 << 20;

/// Pieces of at most this part of the source are not halved, if it is no more than [`LONGEST_COPIED`].
const PIECE_SHARE: usize = 8;

/// Pieces of more bytes are halved, however long the source is: to copy one takes as long as a thousand calls.
const LONGEST_COPIED: usize = 4 << 20;

/// See [`Os::relocate`](crate::Os::relocate).
///
/// # Safety
/// - As there: both ranges are committed, page-aligned and do not overlap; the contents at `to` are not needed.
pub(super) unsafe fn relocate(from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved> {
    // SAFETY: the range at `to` is committed, and its contents are not needed.
    if let Err(errno) = unsafe { Linux.release(to, bytes) } {
        return Err(NotMoved { errno, target: Target::Committed });
    }
    // SAFETY: the source is committed, and `to` was unmapped above.
    match unsafe { move_to(from, bytes, to) } {
        Err(Errno::FAULT) => {
            // SAFETY: nothing has moved: the source is committed, and `to` was unmapped above.
            let moved = unsafe { move_pieces(from, bytes, to) };
            moved.map_err(|target| NotMoved { errno: Errno::FAULT, target })
        }
        // SAFETY: `to` was unmapped above.
        moved => moved.map_err(|errno| NotMoved { errno, target: unsafe { commit_again(to, bytes) } }),
    }
}

/// The length of a piece at `start` that has `wanted` bytes or a little less: it ends where a huge page does, if it can, and else with a page.
fn cut(start: usize, wanted: usize) -> usize {
    let end = align::down(start + wanted, PIECE_LEAST);
    if end > start { end - start } else { align::down(wanted, PAGE_BYTES) }
}

/// Moves a source in pieces, and copies those that the kernel refuses to move. On an error, returns the state of the target; the source is unchanged.
///
/// # Safety
/// - The source is committed and whole pages long, the target is unmapped, and no other code uses either.
unsafe fn move_pieces(from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), Target> {
    let (mut start, mut length) = (0, bytes);
    while start < bytes {
        let (from_piece, to_piece) = (from.wrapping_add(start), to.wrapping_add(start));
        // SAFETY: the piece of the source is committed, and that of the target is unmapped.
        match unsafe { move_to(from_piece, length, to_piece) } {
            Ok(()) => {}
            Err(Errno::FAULT) if length > (bytes / PIECE_SHARE).clamp(PIECE_LEAST, LONGEST_COPIED) => {
                length = cut(from_piece.addr(), length / 2);
                continue;
            }
            Err(_) => {
                // SAFETY: that piece of the source is committed, and that of the target is unmapped.
                let copied = unsafe { copy_piece(from_piece, length, to_piece) };
                if let Err(target) = copied {
                    // SAFETY: the pieces before this one have moved: they are at `to`, and mapped and empty at `from`.
                    unsafe { bytes::copy(from, to, start) };
                    // SAFETY: their contents were copied back, so the range is not needed.
                    let is_unmapped = start == 0 || unsafe { Linux.release(to, start) }.is_ok();
                    // A range that stays mapped must not be committed again.
                    return Err(if is_unmapped { target } else { Target::Taken });
                }
            }
        }
        start += length;
        let rest = bytes - start;
        length = if 2 * length < rest { cut(from_piece.addr() + length, 2 * length) } else { rest };
    }
    Ok(())
}

/// Copies a piece that the kernel refuses to move, which is zero then. On an error, returns the state of the target, and the source is unchanged.
///
/// # Safety
/// - The source is committed, the target is unmapped, and no other code uses either.
unsafe fn copy_piece(from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), Target> {
    // SAFETY: the target is unmapped.
    match unsafe { commit_again(to, bytes) } {
        Target::Committed => {}
        target => return Err(target),
    }
    // SAFETY: both are committed and do not overlap.
    unsafe { bytes::copy(to, from, bytes) };
    // SAFETY: the contents have been copied, so they are not needed at `from`.
    if !(unsafe { Linux.purge(from, bytes) }.is_ok() && Linux.purge_zeroes()) {
        // SAFETY: as above, and the piece is committed.
        unsafe { bytes::fill(from, 0, bytes) };
    }
    Ok(())
}

/// Moves the memory at `from` to `to`; on an error it stays where it is.
///
/// # Safety
/// - `from` is committed, the caller has just unmapped `to`, and no other code uses either.
unsafe fn move_to(from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), Errno> {
    // SAFETY: `from` is committed, and no other code uses it.
    let at = unsafe { move_near(from, bytes, to) }?;
    if at == to {
        return Ok(());
    }
    // SAFETY: the call above moved the memory at `from` to `at`.
    unsafe { bring_back(at, bytes, from) };
    Err(Errno::EXIST)
}

/// Moves the memory at `from` to `near`, or elsewhere if something is mapped there; returns where it is.
///
/// # Safety
/// - `from` is committed, and no other code uses it.
pub(super) unsafe fn move_near(from: *mut u8, bytes: usize, near: *mut u8) -> Result<*mut u8, Errno> {
    let flags = MREMAP_MAYMOVE | MREMAP_DONTUNMAP;
    let saved = process::errno();
    // Not the C library's function: before glibc 2.40 it passes the address on only with `MREMAP_FIXED`.
    // SAFETY: `from` is committed, and without `MREMAP_FIXED` the kernel replaces no mapping.
    let got = unsafe { libc::syscall(libc::SYS_mremap, from, bytes, bytes, flags, near) };
    let errno = process::errno();
    process::set_errno(saved);
    if got == -1 { Err(errno) } else { Ok(freestone_base::ptr::from_exposed(got as usize)) }
}

/// Copies memory that was moved elsewhere back to where it was, into a new mapping, and unmaps the place where it is.
///
/// # Safety
/// - `elsewhere` is where [`move_near`] moved the `n` bytes that were at `from`.
pub(super) unsafe fn bring_back(elsewhere: *mut u8, n: usize, from: *mut u8) {
    // If this fails, `from` is still mapped: the kernel has left it so. Where an emulator has unmapped it, another thread's mapping may be there by now, and is
    // replaced: that cannot be told from what the kernel leaves.
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: what was mapped at `from` has moved, and no other code uses the range.
    let _ = unsafe { mmap_anonymous(from.cast(), n, access, flags) };
    // SAFETY: `from` is mapped, and the kernel chose `elsewhere` where nothing was mapped.
    unsafe { bytes::copy(from, elsewhere, n) };
    // SAFETY: the contents were copied, and no other code has the mapping's address.
    let _ = unsafe { Linux.release(elsewhere, n) };
}

/// Maps a range again that was unmapped for a move; returns its state.
///
/// # Safety
/// - The caller has just unmapped the range, and no code uses it.
unsafe fn commit_again(at: *mut u8, bytes: usize) -> Target {
    // SAFETY: the range lies inside the address range of the heap, and committing replaces no mapping.
    match unsafe { Linux.commit(at, bytes, false) } {
        Ok(()) => Target::Committed,
        Err(Errno::EXIST) => Target::Taken,
        Err(_) => Target::Reserved,
    }
}

#[cfg(test)]
mod tests;
