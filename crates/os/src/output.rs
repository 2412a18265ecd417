//! Writing a file piece by piece, and reading one of the kernel's.

use crate::Errno;
use crate::growing_file::{without_signals, write_whole};
use crate::linux::process_facts::borrow_descriptor;
use core::ffi::CStr;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fcntl_setfl, open, unlink};

/// A file that is written from its start on, and closed when this is dropped.
#[derive(Debug)]
pub struct OutputFile {
    file: OwnedFd,
}

impl OutputFile {
    /// Creates the file at `path`, or empties it. A pipe that nobody reads is refused.
    ///
    /// ```
    /// use freestone_os::OutputFile;
    ///
    /// let path = std::env::temp_dir().join(format!("freestone-output-{}", std::process::id()));
    /// let name = std::ffi::CString::new(path.to_str().expect("a text")).expect("no zero byte");
    /// OutputFile::create(&name).expect("the folder can be written").write(b"one line\n").expect("there is room");
    /// assert_eq!(std::fs::read(&path).expect("the file exists"), b"one line\n");
    /// std::fs::remove_file(&path).expect("the file exists");
    /// ```
    ///
    /// # Errors
    /// The kernel's error.
    pub fn create(path: &CStr) -> Result<Self, Errno> {
        Self::open(path, OFlags::TRUNC, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)
    }

    /// Creates a file at `path`, where nothing is, that only its user may open.
    ///
    /// # Errors
    /// The kernel's error: [`Errno::EXIST`] if something is there, a symbolic link included.
    pub fn create_private(path: &CStr) -> Result<Self, Errno> {
        Self::open(path, OFlags::EXCL | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)
    }

    /// Removes the file at `path`, if it can be removed.
    pub fn remove(path: &CStr) {
        let _ = unlink(path);
    }

    fn open(path: &CStr, how: OFlags, mode: Mode) -> Result<Self, Errno> {
        // Opening waits for no reader of a pipe; writing waits for one that is there.
        let now = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open(path, how | now | OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC, mode)?;
        fcntl_setfl(&file, OFlags::empty())?;
        Ok(Self { file })
    }

    /// Writes all `bytes`.
    ///
    /// # Errors
    /// The kernel's error; a part may be written then. `EFBIG` at the process's limit on the length of files, and `EPIPE`, without the signals.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Errno> {
        write_all(self.file.as_fd(), bytes)
    }
}

/// Writes all `bytes` to an open descriptor.
///
/// ```
/// assert_eq!(freestone_os::write_descriptor(-1, b"text").map_err(|errno| errno.0), Err(9), "EBADF");
/// ```
///
/// # Errors
/// The kernel's error; a part may be written then.
pub fn write_descriptor(descriptor: i32, bytes: &[u8]) -> Result<(), Errno> {
    borrow_descriptor(descriptor).map_or(Err(Errno(libc::EBADF)), |to| write_all(to, bytes))
}

fn write_all(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    without_signals(|| write_whole(bytes, |rest| rustix::io::write(to, rest)))
}

/// Reads the file at `path` to its end, and passes on each piece, which is read into `room`.
///
/// # Errors
/// The kernel's error from opening or reading, or the first that `each` returns.
pub fn read_pieces(
    path: &CStr,
    room: &mut [u8],
    mut each: impl FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    loop {
        match rustix::io::read(&file, &mut *room) {
            Ok(0) => return Ok(()),
            Ok(n) => each(room.get(..n).unwrap_or_default())?,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
