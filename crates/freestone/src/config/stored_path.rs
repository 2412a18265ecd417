//! The path that is the value of an option.
//!
//! Invariant: it is written only while the allocator starts, once by each source of options that names one, and read only after that.

use crate::config::Mistake;
use freestone_base::sync::{AtomicBool, AtomicU8, Ordering};

/// Longest path in bytes, with its final zero.
pub(crate) const PATH_BYTES: usize = 1024;

/// See the module header.
pub(crate) struct StoredPath {
    path: [AtomicU8; PATH_BYTES],
    is_set: AtomicBool,
}

impl StoredPath {
    /// No path.
    pub(crate) const fn none() -> Self {
        Self { path: [const { AtomicU8::new(0) }; PATH_BYTES], is_set: AtomicBool::new(false) }
    }

    /// Whether there is one.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// The path as a C string with what follows it in the buffer, if one is set.
    pub(crate) fn get(&self) -> Option<[u8; PATH_BYTES]> {
        if !self.is_set() {
            return None;
        }
        let mut path = [0; PATH_BYTES];
        for (byte, stored) in path.iter_mut().zip(&self.path) {
            *byte = stored.load(Ordering::Relaxed);
        }
        Some(path)
    }

    /// Sets the path, in place of one set before; an empty one means none.
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
}

#[cfg(test)]
mod tests;
