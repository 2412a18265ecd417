//! Reading the kernel's small files into the caller's memory.

use crate::Errno;
use rustix::fs::{Mode, OFlags, open};
use rustix::path::Arg;

/// The contents of a file, as much as fits into `buffer`.
///
/// # Errors
/// The kernel's error from opening or reading.
pub(crate) fn read(path: impl Arg, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&file, rest)? {
            0 => break,
            n => len += n,
        }
    }
    Ok(buffer.get(..len).unwrap_or_default())
}

/// The number that is all the text of a file.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}
