//! Reading the kernel's small files, with no memory but the caller's.

use rustix::fs::{Mode, OFlags, open};
use rustix::path::Arg;

/// The contents of a file, as much as fits; `None` if it cannot be read.
pub(crate) fn read(path: impl Arg, buffer: &mut [u8]) -> Option<&[u8]> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&file, rest) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(_) => return None,
        }
    }
    buffer.get(..len)
}

/// The number that a file consists of.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.trim().parse().ok()
}
