//! Numbers in a file that other processes map: one process writes them, any process of the same user reads them.
#![allow(unsafe_code)]
//!
//! The file is created with its full length of zeros, so that a full disk is noticed then and not by a fault later. Only its user may open it. A forked
//! child does not inherit the mapping, however it was made: the words are those of the process that created the file.
//!
//! # Safety
//! A mapping has room for all its words and is never unmapped in the process that made it, which `process` names. Whoever may write the file could shorten it, and so end the processes that map it:
//! that is the user whose processes they are, if the file was made here or opened by [`SharedWords::open_own`].

use crate::growing_file::write_zeros;
use crate::{Errno, kernel, process};
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, open, unlink};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap};

/// The words of this process's file, if there is one. See the module header.
///
/// ```
/// use core::sync::atomic::Ordering;
/// use freestone_os::SharedWords;
///
/// static WORDS: SharedWords<100> = SharedWords::none();
/// let path = std::env::temp_dir().join(format!("freestone-words-{}", std::process::id()));
/// let path = std::ffi::CString::new(path.to_str().expect("a text")).expect("no zero byte");
/// WORDS.create(&path).expect("the folder can be written")[99].store(7, Ordering::Relaxed);
/// let read = SharedWords::<100>::open(&path).expect("the file exists");
/// assert_eq!(read[99].load(Ordering::Relaxed), 7);
/// SharedWords::<100>::remove(&path).expect("the file exists");
/// ```
pub struct SharedWords<const N: usize> {
    words: AtomicPtr<[AtomicU64; N]>,
    /// The process that created the file.
    process: AtomicI32,
}

impl<const N: usize> SharedWords<N> {
    /// No file.
    #[must_use]
    pub const fn none() -> Self {
        Self { words: AtomicPtr::new(ptr::null_mut()), process: AtomicI32::new(0) }
    }

    /// The words, if there is a file of this process.
    #[must_use]
    pub fn get(&self) -> Option<&'static [AtomicU64; N]> {
        // In a child that was made by a raw system call, no handler has called `forget`. Without a file, no system call is made: a filter may end the process.
        if self.words.load(Ordering::Relaxed).is_null() || self.process.load(Ordering::Acquire) != process::id() {
            return None;
        }
        // SAFETY: null, or a mapping of `N` words of this process, which is never unmapped (`create`).
        unsafe { self.words.load(Ordering::Acquire).as_ref() }
    }

    /// Forgets the words, in a forked child, where they are not mapped. Its number may be its parent's, in another namespace.
    pub fn forget(&self) {
        self.words.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// Creates a file of zeros at `path`, where nothing is, and maps it. One thread at a time.
    ///
    /// # Errors
    /// The kernel's error: [`Errno::EXIST`] if something is there, a symbolic link included. No file of this call is left then.
    pub fn create(&self, path: &CStr) -> Result<&'static [AtomicU64; N], Errno> {
        let words = create_mapped(path, size_of::<[AtomicU64; N]>())?.cast();
        // First: another thread that finds this process's number must not find the words of the one that made it.
        self.forget();
        self.process.store(process::id(), Ordering::Release);
        self.words.store(words, Ordering::Release);
        // SAFETY: the file has `N` words, all of them are mapped, aligned to an OS page, and stay so; any bits are a number.
        Ok(unsafe { &*words })
    }

    /// Maps the words of the file at `path`, for reading only: a store to them faults. Another user's file may be shortened at any time, and then a load faults, too.
    ///
    /// # Errors
    /// The kernel's error; [`Errno::INVAL`] if the file is not regular, or not as long.
    pub fn open(path: &CStr) -> Result<&'static [AtomicU64; N], Errno> {
        Self::open_if(path, |_| true)
    }

    /// As [`SharedWords::open`], only if the file is this process's user's: in a folder that all may write, anybody may have put it there.
    ///
    /// # Errors
    /// As for [`SharedWords::open`]; [`Errno::INVAL`] if the file is another user's.
    pub fn open_own(path: &CStr) -> Result<&'static [AtomicU64; N], Errno> {
        // SAFETY: the call reads a number.
        Self::open_if(path, |owner| owner == unsafe { libc::geteuid() })
    }

    fn open_if(path: &CStr, may_be_of: impl FnOnce(u32) -> bool) -> Result<&'static [AtomicU64; N], Errno> {
        let file = open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let facts = fstat(&file)?;
        let is_regular = rustix::fs::FileType::from_raw_mode(facts.st_mode).is_file();
        if !is_regular || !may_be_of(facts.st_uid) || u64::try_from(facts.st_size) != Ok((N * size_of::<u64>()) as u64)
        {
            return Err(Errno::INVAL);
        }
        let words = map(&file, size_of::<[AtomicU64; N]>(), ProtFlags::READ)?;
        // SAFETY: as in `create`.
        Ok(unsafe { &*words.cast() })
    }

    /// Removes the file at `path`. Processes that have mapped it keep it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove(path: &CStr) -> Result<(), Errno> {
        Ok(unlink(path)?)
    }
}

/// Creates a file of `bytes` that are zero, and maps it; no file is left if that fails.
fn create_mapped(path: &CStr, bytes: usize) -> Result<*mut u8, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR)?;
    let mapped =
        write_zeros(&file, 0..bytes as u64).and_then(|()| map(&file, bytes, ProtFlags::READ | ProtFlags::WRITE));
    if mapped.is_err() {
        let _ = unlink(path);
    }
    mapped
}

/// Maps the first `bytes` of a file, for good.
fn map(file: &OwnedFd, bytes: usize, access: ProtFlags) -> Result<*mut u8, Errno> {
    // SAFETY: the kernel places the new mapping where nothing is mapped.
    let at = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
    kernel::note_mapped();
    // SAFETY: the mapping was just made; the advice changes nothing in this process.
    let _ = unsafe { madvise(at, bytes, Advice::LinuxDontFork) };
    Ok(at.cast())
}

#[cfg(test)]
mod tests;
