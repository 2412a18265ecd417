//! Storage for the heap's own metadata: thread heaps and the like. It is never freed.
#![allow(unsafe_code)]
//!
//! # Safety
//! The pages of a run of kind `Metadata` are handed out here only, piece by piece.

use crate::page::page_heap::PageHeap;
use crate::span::Kind;
use core::ffi::c_void;
use freestone_base::align;
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;

/// Pieces of storage are aligned to this many bytes.
const ALIGN_BYTES: usize = 64;

impl<O: Os> PageHeap<O> {
    /// Storage for `bytes` of metadata, at most a page: zeroed, aligned to 64 bytes, never freed; `None` when memory runs out.
    pub fn metadata(&self, bytes: usize) -> Option<*mut c_void> {
        let bytes = align::up(bytes, ALIGN_BYTES);
        debug_assert!(bytes <= PAGE_BYTES);
        loop {
            if let Some(piece) = self.cut(bytes) {
                return Some(piece.cast());
            }
            let run = self.allocate(1, 1, Kind::Metadata)?;
            if !run.zero {
                // SAFETY: The page was just allocated, and nobody else knows of it.
                unsafe { self.layout().page_start(run.page).write_bytes(0, PAGE_BYTES) };
            }
            self.state.lock().storage = (crate::span::PageIndex(run.page), PAGE_BYTES);
        }
    }

    /// The next `bytes` of the present page, if they are left.
    fn cut(&self, bytes: usize) -> Option<*mut u8> {
        let mut state = self.state.lock();
        let (page, left) = state.storage;
        let left_then = left.checked_sub(bytes)?;
        state.storage = (page, left_then);
        Some(self.layout().page_start(page.0).wrapping_add(PAGE_BYTES - left))
    }
}
