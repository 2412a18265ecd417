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
//! it unmaps the target and then refuses a source that is made of several mappings; from 6.17 on it moves such a source piece by
//! piece, and where it stops in the middle nobody can tell which pieces have moved. Without that flag all kernels refuse such a source
//! before anything has moved, and the target is in one of two states that are known here, for it was unmapped here.
//!
//! The address is then only a hint, which the kernel takes when nothing is there. If somebody maps something in between, the memory is
//! moved elsewhere, and copied back.
//!
//! A source that is refused for being several mappings is nearly always a block whose whole huge pages were asked for: it is tried again in
//! three pieces, cut where those begin and end, and a piece that is refused again is copied.
//!
//! # Safety
//! As for [`Os::relocate`](crate::Os::relocate).

use crate::{Errno, Linux, NotMoved, Os, Target, process};
use core::ops::Range;
use freestone_base::align;

/// Pieces that a source is tried in.
const PIECES: usize = 3;

/// See [`Os::relocate`](crate::Os::relocate).
///
/// # Safety
/// - As there: both ranges are committed, page-aligned and do not overlap; nobody needs what is at `to`.
pub(super) unsafe fn relocate(from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), NotMoved> {
    // SAFETY: nobody needs what is at `to`; both ranges are the caller's.
    unsafe {
        if let Err(errno) = Linux.release(to, bytes) {
            return Err(NotMoved { errno, target: Target::Committed });
        }
        match move_to(from, bytes, to) {
            Err(Errno::FAULT) if Linux.huge_page_bytes() > 0 => {
                let pieces = pieces(from.addr(), bytes, Linux.huge_page_bytes());
                move_pieces(from, to, pieces).map_err(|target| NotMoved { errno: Errno::FAULT, target })
            }
            moved => moved.map_err(|errno| NotMoved { errno, target: commit_again(to, bytes) }),
        }
    }
}

/// A source's offsets, cut where its whole huge pages begin and end.
fn pieces(from: usize, bytes: usize, huge: usize) -> [Range<usize>; PIECES] {
    let end = align::down(from + bytes, huge).saturating_sub(from);
    let start = (align::up(from, huge) - from).min(end);
    [0..start, start..end, end..bytes]
}

/// Moves pieces, or copies those that the kernel will not move; or says what became of the target, and all of the source is where it was.
///
/// # Safety
/// - The pieces are all of the caller's source, in order; the target is unmapped.
pub(super) unsafe fn move_pieces(from: *mut u8, to: *mut u8, pieces: [Range<usize>; PIECES]) -> Result<(), Target> {
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        let (start, bytes) = (piece.start, piece.len());
        // SAFETY: the piece lies in both ranges; what was moved before it is at `to`, and the source is mapped there and empty.
        unsafe {
            let (from_piece, to_piece) = (from.wrapping_add(start), to.wrapping_add(start));
            if move_to(from_piece, bytes, to_piece).is_ok() {
                continue;
            }
            let target = commit_again(to_piece, bytes);
            if target != Target::Committed {
                from.copy_from_nonoverlapping(to, start);
                // What stays mapped must not be committed again.
                let is_unmapped = start == 0 || Linux.release(to, start).is_ok();
                return Err(if is_unmapped { target } else { Target::Taken });
            }
            to_piece.copy_from_nonoverlapping(from_piece, bytes);
            if !(Linux.purge_zeroes() && Linux.purge(from_piece, bytes).is_ok()) {
                from_piece.write_bytes(0, bytes);
            }
        }
    }
    Ok(())
}

/// Moves the memory at `from` to `to`, or nowhere.
///
/// # Safety
/// - `from` is committed and the caller's; `to` was unmapped by the caller.
unsafe fn move_to(from: *mut u8, bytes: usize, to: *mut u8) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        let at = move_near(from, bytes, to)?;
        if at == to {
            return Ok(());
        }
        bring_back(at, bytes, from);
        Err(Errno::EXIST)
    }
}

/// Moves the memory at `from` to `near`, or where the kernel likes it better; says where.
///
/// # Safety
/// - `from` is committed and the caller's; nothing is mapped at `near` that the caller knows of.
pub(super) unsafe fn move_near(from: *mut u8, bytes: usize, near: *mut u8) -> Result<*mut u8, Errno> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
    let saved = process::errno();
    // Not the C library's function: before glibc 2.40 it passes the address on with `MREMAP_FIXED` only.
    // SAFETY: without `MREMAP_FIXED` nothing is replaced by the move.
    let got = unsafe { libc::syscall(libc::SYS_mremap, from, bytes, bytes, flags, near) };
    let errno = process::errno();
    process::set_errno(saved);
    if got == -1 { Err(errno) } else { Ok(freestone_base::ptr::from_exposed(got as usize)) }
}

/// Copies what was moved elsewhere to where it was, which is still mapped, and unmaps the elsewhere.
///
/// # Safety
/// - `elsewhere` is where [`move_near`] moved the `bytes` that were at `from`.
pub(super) unsafe fn bring_back(elsewhere: *mut u8, bytes: usize, from: *mut u8) {
    // SAFETY: `MREMAP_DONTUNMAP` left the source mapped; the new mapping is known to nobody else.
    unsafe {
        from.copy_from_nonoverlapping(elsewhere, bytes);
        let _ = Linux.release(elsewhere, bytes);
    }
}

/// Maps a range again that was unmapped for a move; what became of it.
///
/// # Safety
/// - The range is the caller's, who has just unmapped it.
unsafe fn commit_again(at: *mut u8, bytes: usize) -> Target {
    // SAFETY: the caller's promise; committing replaces nothing.
    match unsafe { Linux.commit(at, bytes, false) } {
        Ok(()) => Target::Committed,
        Err(Errno::EXIST) => Target::Taken,
        Err(_) => Target::Reserved,
    }
}

#[cfg(test)]
mod tests;
