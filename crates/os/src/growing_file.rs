//! A new file that grows. Parts of it are mapped: what is written there stays, whatever becomes of the process. Others are written as a whole.
#![allow(unsafe_code)]
//!
//! No descriptor stays open: programs close descriptors that they do not know. So each part opens the file by its name, and goes on only if it is the same
//! file still.
//!
//! Memory is allocated for a part before it is mapped, so that a full disk is an error here, and not a signal at a write. (Only if another
//! program cuts the file is there a SIGBUS.)
//!
//! # Safety
//! A mapping is new, and its only user is the caller, who returns it once.

use crate::pthread::signal_mask::{self, SignalSet, change_blocked, set_of};
use crate::{Errno, kernel, process};
use core::ffi::CStr;
use core::ops::Range;
use core::ptr;
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, open};
use rustix::io::Errno as KernelErrno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(file: &OwnedFd) -> Result<Self, Errno> {
        let status = fstat(file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        Ok(Self { device: status.st_dev, inode: status.st_ino })
    }

    /// As two numbers.
    #[must_use]
    pub fn to_numbers(self) -> [u64; 2] {
        [self.device, self.inode]
    }

    /// From what [`FileId::to_numbers`] returned.
    #[must_use]
    pub fn of_numbers([device, inode]: [u64; 2]) -> Self {
        Self { device, inode }
    }
}

/// Makes an empty file that only its user can read.
///
/// # Errors
/// [`Errno::EXIST`] if there is a file of this name, and the kernel's other errors.
pub fn create(path: &CStr) -> Result<FileId, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    FileId::of(&open(path, flags, Mode::RUSR | Mode::WUSR)?)
}

/// The file, open: for one part.
#[derive(Debug)]
pub struct OpenFile(OwnedFd);

/// Opens the file that [`create`] made.
///
/// # Errors
/// [`Errno::INVAL`] if the name is another file's now, and the kernel's other errors.
pub fn open_again(path: &CStr, id: FileId) -> Result<OpenFile, Errno> {
    let file = open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?;
    if FileId::of(&file)? == id { Ok(OpenFile(file)) } else { Err(Errno::INVAL) }
}

impl OpenFile {
    /// Maps `bytes` at `offset`, which it allocates. What is new is zero. Parts do not overlap, and only the first one is mapped again. An OS page may have the end of
    /// one part and the beginning of the next: it is mapped with both.
    ///
    /// # Errors
    /// The kernel's: the disk is full, or a limit is reached.
    pub fn map(&self, offset: u64, bytes: usize) -> Result<*mut u8, Errno> {
        let (file, end) = (&self.0, offset + bytes as u64);
        match without_signals(|| Ok(fallocate(file, FallocateFlags::empty(), offset, bytes as u64)?)) {
            // The file system cannot allocate in advance, or a signal interrupted it: with a timer's signals it might be interrupted for ever, but writes go on.
            Err(Errno(libc::EOPNOTSUPP | libc::EINTR)) => {
                write_zeros(file, missing(offset..end, fstat(file)?.st_size as u64))?
            }
            other => other?,
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (before, flags) = (before(offset as usize), MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel places the new mapping where nothing is mapped.
        let at = unsafe { mmap(ptr::null_mut(), before + bytes, access, flags, file, offset - before as u64) }?;
        kernel::note_mapped();
        Ok(at.cast::<u8>().wrapping_add(before))
    }

    /// Writes `bytes` at `offset`, and makes the file that long.
    ///
    /// # Errors
    /// As for [`OpenFile::map`]. A part may have been written.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        without_signals(|| write_at(&self.0, bytes, offset))
    }
}

/// What has to be written of a part that is to be mapped, in a file of `len` bytes: nothing of the first part if it is there, because it has contents then. Another
/// part is new, wherever the file ends: what is before it is another thread's, which may have written there already, and what is behind it does not fill it.
fn missing(part: Range<u64>, len: u64) -> Range<u64> {
    if part.start == 0 { len.min(part.end)..part.end } else { part }
}

/// Writes `bytes` to a part of a file.
fn write_at(file: &OwnedFd, bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    write_whole(bytes, |rest| rustix::io::pwrite(file, rest, at).inspect(|&n| at += n as u64))
}

/// Unmaps a part; it stays in the file.
///
/// # Safety
/// - [`OpenFile::map`] returned `at` for as many bytes, and no code uses the memory any more.
pub unsafe fn unmap(at: *mut u8, bytes: usize) {
    let before = before(at.addr());
    // SAFETY: the range is one mapping that no code uses any more (this function's contract). The kernel cannot refuse that.
    let _ = unsafe { munmap(at.wrapping_sub(before).cast(), before + bytes) };
}

/// Bytes before `place`, an address or one in a file, in its OS page.
fn before(place: usize) -> usize {
    place % process::os_page_bytes()
}

/// Writes zeros to a part of a file.
pub(crate) fn write_zeros(file: &OwnedFd, part: Range<u64>) -> Result<(), Errno> {
    let (zeros, mut at) = ([0; 4096], part.start);
    without_signals(|| {
        while at < part.end {
            let len = zeros.len().min((part.end - at) as usize);
            let piece = zeros.get(..len).unwrap_or_default();
            write_at(file, piece, at)?;
            at += len as u64;
        }
        Ok(())
    })
}

/// Has `write` write all `bytes`: it is passed what is left of them, and returns how many it has written.
///
/// # Errors
/// The first error of `write` that is no interruption. ENOSPC if it has written nothing and says no error: such a file would be asked for ever.
pub(crate) fn write_whole(
    bytes: &[u8],
    mut write: impl FnMut(&[u8]) -> Result<usize, KernelErrno>,
) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match write(rest) {
            Ok(0) => return Err(Errno(libc::ENOSPC)),
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(KernelErrno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Runs `write`. At the limit on the length of files it fails with `EFBIG`, and on a pipe whose reader has gone with `EPIPE`, without the signals that the
/// kernel sends the thread as well: SIGXFSZ and SIGPIPE, which would end a program that has no handlers for them.
///
/// Miri knows no signals.
pub(crate) fn without_signals<R>(write: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    if cfg!(miri) {
        return write();
    }
    let before = change_blocked(libc::SIG_BLOCK, set_of(libc::SIGXFSZ) | set_of(libc::SIGPIPE));
    let written = write();
    let sent = match written {
        Err(Errno(libc::EFBIG)) => set_of(libc::SIGXFSZ),
        Err(Errno(libc::EPIPE)) => set_of(libc::SIGPIPE),
        _ => SignalSet::MIN,
    };
    unblock(before, sent);
    written
}

/// Lets the thread block what it blocked `before`, and takes back the signal first that was `sent`, if any, and is not among that.
#[inline(never)]
fn unblock(before: SignalSet, sent: SignalSet) {
    if sent & !before != 0 {
        let (now, errno) = (libc::timespec { tv_sec: 0, tv_nsec: 0 }, process::errno());
        let (number, information) = (libc::SYS_rt_sigtimedwait, ptr::null_mut::<libc::siginfo_t>());
        // By number, because the C library's function is a place where a thread can be cancelled.
        // SAFETY: the call reads two locals, the set of the size that it is told, and takes the signal if there is one.
        unsafe { libc::syscall(number, &raw const sent, information, &raw const now, size_of::<SignalSet>()) };
        process::set_errno(errno);
    }
    signal_mask::set_back(before);
}

/// The process's working directory, in `buffer`; empty if it is not known, or is longer.
pub fn working_directory(buffer: &mut [u8]) -> &[u8] {
    match rustix::fs::readlinkat_raw(rustix::fs::CWD, c"/proc/self/cwd", &mut *buffer) {
        Ok(len) if len < buffer.len() => buffer.get(..len).unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
