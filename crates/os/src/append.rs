//! Appending a line to a file.

use crate::Errno;
use core::ffi::CStr;
use rustix::fs::{Mode, OFlags, open};

/// Appends `bytes` to the file at `path`, which is created if necessary, with a single write.
///
/// # Errors
/// The kernel's error from opening or writing; [`Errno::AGAIN`] if only a part was written.
pub fn append(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)?;
    if rustix::io::write(&file, bytes)? == bytes.len() { Ok(()) } else { Err(Errno::AGAIN) }
}
