//! Storage for the heap's own metadata: records of heaps. It is never freed.

use crate::page::page_heap::{OwnedRun, PageHeap};
use crate::page::runs::Extent;
use crate::span::Kind;
use core::ffi::c_void;
use freestone_base::align;
use freestone_base::units::{PAGE_BYTES, Pages};
use freestone_os::Os;

/// Pieces of storage are aligned to this many bytes.
const ALIGN_BYTES: usize = 64;

impl<O: Os> PageHeap<O> {
    /// Storage for `bytes` of metadata, at most a page: zeroed, aligned to 64 bytes, never freed; `None` when memory runs out.
    pub(crate) fn metadata(&self, bytes: usize) -> Option<*mut c_void> {
        let bytes = align::up(bytes, ALIGN_BYTES);
        debug_assert!(bytes <= PAGE_BYTES);
        loop {
            if let Some(piece) = self.cut(bytes) {
                return Some(piece.cast());
            }
            let run = self.allocate(Pages(1), Pages(1), Kind::Metadata)?;
            let page = Extent::new(run.page, Pages(1));
            if !run.zero {
                self.zero(&OwnedRun::taken(page));
            }
            self.state.lock().storage = (page.first, PAGE_BYTES);
        }
    }

    /// The next `bytes` of the current page, if it has as many left.
    fn cut(&self, bytes: usize) -> Option<*mut u8> {
        let mut state = self.state.lock();
        let (page, left) = state.storage;
        let left_then = left.checked_sub(bytes)?;
        state.storage = (page, left_then);
        Some(self.layout().page_start(page).wrapping_add(PAGE_BYTES - left))
    }
}

#[cfg(test)]
mod tests;
