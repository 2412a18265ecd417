//! Appending a line to a file.

use crate::Errno;
use crate::growing_file::without_signals;
use core::ffi::CStr;
use rustix::fs::{Mode, OFlags, open};

/// Appends `bytes` to the file at `path`, which is created if necessary, with a single write.
///
/// ```
/// let path = std::env::temp_dir().join(format!("freestone-append-{}", std::process::id()));
/// let name = std::ffi::CString::new(path.to_str().expect("a text")).expect("no zero byte");
/// freestone_os::append(&name, b"one line\n").expect("the folder can be written");
/// assert_eq!(std::fs::read(&path).expect("the file exists"), b"one line\n");
/// std::fs::remove_file(&path).expect("the file exists");
/// ```
///
/// # Errors
/// The kernel's error from opening or writing; [`Errno::AGAIN`] if only a part was written. `EFBIG` at the process's limit on the length of files, and `EPIPE`,
/// without the signals.
pub fn append(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    // Nothing waits for the reader of a pipe.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)?;
    let written = without_signals(|| Ok(rustix::io::write(&file, bytes)?))?;
    if written == bytes.len() { Ok(()) } else { Err(Errno::AGAIN) }
}
