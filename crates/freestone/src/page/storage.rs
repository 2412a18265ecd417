//! Storage for records of heaps: a part of the address range of its own, with gaps around it, so that a program that writes past the end of a block
//! does not reach it. It is never freed.

use crate::page::page_heap::PageHeap;
use crate::page::runs::Runs;
use core::ffi::c_void;
use freestone_base::align;
use freestone_os::Os;

/// Pieces of storage are aligned to this many bytes.
const ALIGN_BYTES: usize = 64;

impl<O: Os> PageHeap<O> {
    /// Storage for `bytes`: zeroed, aligned to 64 bytes, never freed; `None` when memory runs out.
    pub(crate) fn metadata(&self, bytes: usize) -> Option<*mut c_void> {
        let mut guard = self.lock();
        let state = &mut *guard;
        self.piece(&mut state.runs, &mut state.storage, bytes)
    }

    /// The next piece of the storage, of which `used` bytes are handed out.
    pub(super) fn piece(&self, runs: &mut Runs, used: &mut usize, bytes: usize) -> Option<*mut c_void> {
        let start = *used;
        let end = start + align::up(bytes, ALIGN_BYTES);
        runs.extend_storage(self.os(), end).ok()?;
        *used = end;
        Some(self.layout().storage().0.wrapping_add(start).cast())
    }
}

#[cfg(test)]
mod tests;
