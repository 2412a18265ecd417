//! The value of an option that is a path.
//!
//! Invariant: it is written only while the allocator starts, once by each source of options that names one, then once to make it absolute; other threads
//! read it only after that.

use crate::config::Mistake;
use core::ffi::CStr;
use core::str::Utf8Error;
use freestone_base::sync::{AtomicBool, AtomicU8, Ordering};
use freestone_os::{Late, growing_file};

/// Longest path in bytes, with its final zero.
const PATH_BYTES: usize = 1024;

/// A path, or none.
pub(crate) struct PathValue {
    /// Mapped when a path is set: the value is in the library's file, and few processes set a path.
    path: Late<[AtomicU8; PATH_BYTES]>,
    is_set: AtomicBool,
}

impl PathValue {
    /// No path.
    pub(crate) const fn new() -> Self {
        Self { path: Late::new(), is_set: AtomicBool::new(false) }
    }

    /// Whether there is one.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// The path, if one is set.
    #[inline(never)]
    pub(crate) fn load(&self) -> Option<LoadedPath> {
        if !self.is_set() {
            return None;
        }
        let mut path = [0; PATH_BYTES];
        for (byte, stored) in path.iter_mut().zip(self.path.get()?) {
            *byte = stored.load(Ordering::Relaxed);
        }
        Some(LoadedPath(path))
    }

    /// Sets the path, in place of one set before; an empty one stands for none.
    ///
    /// # Errors
    /// The path has more bytes than there is room for, less the final zero, or there is no memory for it; nothing has changed then.
    pub(crate) fn set(&self, path: &[u8]) -> Result<(), Mistake> {
        if path.len() >= PATH_BYTES {
            return Err(Mistake::OutOfRange);
        }
        let Some(stored) = self.path.get_mapped() else { return Err(Mistake::OutOfRange) };
        for (stored, &byte) in stored.iter().zip(path.iter().chain(core::iter::repeat(&0))) {
            stored.store(byte, Ordering::Relaxed);
        }
        self.is_set.store(!path.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Sets the path to that of a file in a folder. If it `is_pattern`, `%` and a letter stand for something in the name, but not in the folder.
    ///
    /// # Errors
    /// As for [`PathValue::set`].
    pub(crate) fn set_joined(&self, folder: &[u8], name: &[u8], is_pattern: bool) -> Result<(), Mistake> {
        let (mut path, mut len) = ([0; PATH_BYTES], 0);
        let mut add = |byte| {
            if let Some(place) = path.get_mut(len) {
                *place = byte;
                len += 1;
            }
        };
        for &byte in folder {
            add(byte);
            if is_pattern && byte == b'%' {
                add(byte);
            }
        }
        name.iter().for_each(|&byte| add(byte));
        // What does not fit is cut, and then too long.
        self.set(path.get(..len).unwrap_or_default())
    }

    /// Makes a relative path one from the process's present folder, so that it holds when the program changes its folder. It stays relative if that folder
    /// is not known, or makes it too long. Where none is set, which is in most processes, no other code than this is executed. `is_pattern` is that
    /// of [`PathValue::set_joined`].
    #[inline(always)]
    pub(crate) fn make_absolute(&self, is_pattern: bool) {
        if self.is_set() {
            self.make_set_one_absolute(is_pattern);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_set_one_absolute(&self, is_pattern: bool) {
        let Some(path) = self.load() else { return };
        let (path, mut folder) = (path.to_bytes(), [0; PATH_BYTES]);
        if path.starts_with(b"/") {
            return;
        }
        let len = growing_file::working_directory(&mut folder).len();
        if let Some(slash) = folder.get_mut(len).filter(|_| len > 0) {
            *slash = b'/';
            let _ = self.set_joined(folder.get(..=len).unwrap_or_default(), path, is_pattern);
        }
    }
}

/// A copy of a path.
pub(crate) struct LoadedPath([u8; PATH_BYTES]);

impl LoadedPath {
    /// As the kernel takes it.
    #[inline(never)]
    pub(crate) fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }

    /// Its bytes.
    pub(crate) fn to_bytes(&self) -> &[u8] {
        self.as_c().to_bytes()
    }

    /// As people read it.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub(crate) fn to_str(&self) -> Result<&str, Utf8Error> {
        self.as_c().to_str()
    }
}

#[cfg(test)]
mod tests;
