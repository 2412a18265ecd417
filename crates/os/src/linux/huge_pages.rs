//! What the kernel says of its huge pages.
//!
//! Several system calls: asked once, or until there is an answer. What cannot be read means "none".

use crate::{Errno, file};
use core::ffi::CStr;

/// Size in bytes of the huge pages that are given on request; 0 when none are, or all memory gets them anyway.
///
/// # Errors
/// The files cannot be read now, and perhaps later: too many are open, or memory is short.
pub(super) fn on_request() -> Result<usize, Errno> {
    let (mut mode, mut bytes) = ([0; 64], [0; 32]);
    if !is_on_request(read(c"/sys/kernel/mm/transparent_hugepage/enabled", &mut mode)?) {
        return Ok(0);
    }
    let size = file::number(read(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &mut bytes)?);
    Ok(size.and_then(|size| usize::try_from(size).ok()).filter(|size| size.is_power_of_two()).unwrap_or(0))
}

/// The contents of a file; nothing if it is not there, or not for us.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    match file::read(path, buffer) {
        Err(errno) if errno.is_passing() => Err(errno),
        contents => Ok(contents.unwrap_or_default()),
    }
}

/// Whether the mode in brackets is the one in which asking counts.
fn is_on_request(modes: &[u8]) -> bool {
    modes.split(|byte| byte.is_ascii_whitespace()).any(|mode| mode == b"[madvise]")
}
