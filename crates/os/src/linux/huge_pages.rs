//! Whether the kernel gives huge pages, on request or without one, and of which size.
//!
//! Reading it takes several system calls, so callers do it once, or until there is an answer. A file that does not exist means that there are none.

use crate::{Errno, file};
use core::ffi::CStr;

/// Size in bytes of the huge pages that the kernel gives on request; 0 if it gives none, or gives them to all memory anyway.
///
/// # Errors
/// The files cannot be read now, but perhaps later: too many files are open, or memory is short.
pub(super) fn on_request() -> Result<usize, Errno> {
    let mut bytes = [0; 32];
    if !is_mode(b"[madvise]")? {
        return Ok(0);
    }
    let size = file::number(read(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &mut bytes)?);
    Ok(size.and_then(|size| usize::try_from(size).ok()).filter(|size| size.is_power_of_two()).unwrap_or(0))
}

/// The contents of a file; empty if it does not exist or may not be read.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    match file::read(path, buffer) {
        Err(errno) if errno.is_passing() => Err(errno),
        contents => Ok(contents.unwrap_or_default()),
    }
}

/// Whether the kernel gives huge pages without a request.
///
/// # Errors
/// As for [`on_request`].
pub(super) fn unasked() -> Result<bool, Errno> {
    is_mode(b"[always]")
}

/// Whether `wanted` is the kernel's mode, which is in brackets.
fn is_mode(wanted: &[u8]) -> Result<bool, Errno> {
    let mut modes = [0; 64];
    let modes = read(c"/sys/kernel/mm/transparent_hugepage/enabled", &mut modes)?;
    Ok(modes.split(|byte| byte.is_ascii_whitespace()).any(|mode| mode == wanted))
}
