//! A new large block that is to read as zero, in memory that was used before.
#![allow(unsafe_code)]
//!
//! To write zeros gives each OS page of the block memory. Of a sparse table a program writes little, and the next one in its place would have all its memory: so
//! a long block of which hardly an OS page has memory is purged.
//!
//! # Safety
//! Only whole OS pages inside a block that nothing was written to yet are purged.

use crate::config::Prefault;
use crate::page::page_heap::PageHeap;
use freestone_base::align;
use freestone_base::units::Bytes;
use freestone_os::Os;

/// Shorter blocks are written: that takes no longer than a few page faults.
const SPARSE_LEAST: usize = 4 << 20;

/// A block is sparse if at most so many of its samples have memory. If half of it has, to purge and to fault it in takes as long as to write all.
const SPARSE_SAMPLES: usize = 1;

impl<O: Os> PageHeap<O> {
    /// Makes the first `bytes` of a new block, which starts at `start`, read as zero.
    ///
    /// # Safety
    /// - The block has so many bytes, and is the caller's, who has written nothing to it.
    pub(crate) unsafe fn clear(&self, start: *mut u8, bytes: usize) {
        let (whole, mut cleared) = (align::down(bytes, self.os.os_page_bytes()), 0);
        if self.is_sparse(start, whole) {
            // SAFETY: the OS pages are the new block's, so they are committed, and their contents are not needed (this function's contract).
            let purged = unsafe { self.os.purge(start, whole) };
            cleared = if purged.is_ok() && self.os.purge_zeroes() { whole } else { 0 };
        }
        let rest = start.wrapping_add(cleared);
        // SAFETY: the bytes are the block's (this function's contract).
        unsafe { rest.write_bytes(0, bytes - cleared) };
    }

    /// Whether a block is long, and hardly an OS page of it has memory, as far as the kernel may be asked.
    fn is_sparse(&self, start: *mut u8, bytes: usize) -> bool {
        let is_whole = start.addr() % self.os.os_page_bytes() == 0;
        if bytes < SPARSE_LEAST || !is_whole || self.settings.sandbox() || self.settings.prefault() != Prefault::Off {
            return false;
        }
        let Some(pages) = Bytes(bytes).to_pages() else { return false };
        self.n_resident_samples(start, pages) <= SPARSE_SAMPLES
    }
}

#[cfg(test)]
mod tests;
