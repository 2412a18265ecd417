//! The file that the option `report` names.
//!
//! Invariant: the path is written only while the allocator starts, once by each source of options that names one, and read only after that.

use crate::config::Mistake;
use core::ffi::CStr;
use freestone_base::sync::{AtomicBool, AtomicU8, Ordering};

/// Longest path in bytes, with its final zero.
const PATH_BYTES: usize = 1024;

/// The file; nothing is written unless its path is set.
pub(crate) struct ReportFile {
    path: [AtomicU8; PATH_BYTES],
    is_set: AtomicBool,
}

impl ReportFile {
    /// No path.
    pub(super) const fn new() -> Self {
        Self { path: [const { AtomicU8::new(0) }; PATH_BYTES], is_set: AtomicBool::new(false) }
    }

    /// Whether there is a report.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// The path as a C string with what follows it in the buffer, if one is set.
    fn path(&self) -> Option<[u8; PATH_BYTES]> {
        if !self.is_set() {
            return None;
        }
        let mut path = [0; PATH_BYTES];
        for (byte, stored) in path.iter_mut().zip(&self.path) {
            *byte = stored.load(Ordering::Relaxed);
        }
        Some(path)
    }

    /// Sets the path, in place of one set before; an empty one turns the report off.
    ///
    /// # Errors
    /// The path has more bytes than there is room for, less the final zero; nothing has changed then.
    pub(crate) fn set(&self, path: &[u8]) -> Result<(), Mistake> {
        if path.len() >= PATH_BYTES {
            return Err(Mistake::OutOfRange);
        }
        for (stored, &byte) in self.path.iter().zip(path.iter().chain(core::iter::repeat(&0))) {
            stored.store(byte, Ordering::Relaxed);
        }
        self.is_set.store(!path.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Appends whole lines, if there is a report. A file that cannot be written is reported on standard error.
    pub(crate) fn append(&self, lines: &[u8]) {
        if let Some(path) = self.path() {
            if let Ok(path) = CStr::from_bytes_until_nul(&path) {
                if let Err(errno) = freestone_os::append(path, lines) {
                    let path = path.to_str().unwrap_or("?");
                    freestone_os::report(format_args!(
                        "cannot write the report to {path}: error {}; give another path",
                        errno.0
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
