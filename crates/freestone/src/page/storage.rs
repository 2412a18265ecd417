//! Storage for records of heaps: a part of the address range of its own, with gaps around it, so that a program that writes past the end of a block
//! does not reach it. It is never freed.
#![allow(unsafe_code)]
//!
//! # Safety
//! A piece of storage is handed out once, zeroed and committed for good.

use crate::page::page_heap::PageHeap;
use crate::page::policy::held_back::{BLOCKS_MOST, Held};
use crate::page::runs::Runs;
use core::ffi::c_void;
use core::slice;
use freestone_base::align;
use freestone_os::Os;

/// Pieces of storage are aligned to this many bytes.
const ALIGN_BYTES: usize = 64;

impl<O: Os> PageHeap<O> {
    /// Storage for `bytes`: zeroed, aligned to 64 bytes, never freed; `None` when memory runs out.
    pub(crate) fn metadata(&self, bytes: usize) -> Option<*mut c_void> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        self.piece(&mut state.runs, &mut state.storage, bytes)
    }

    /// The next piece of the storage, of which `used` bytes are handed out.
    fn piece(&self, runs: &mut Runs, used: &mut usize, bytes: usize) -> Option<*mut c_void> {
        let start = *used;
        let end = start + align::up(bytes, ALIGN_BYTES);
        runs.extend_storage(self.os(), end).ok()?;
        *used = end;
        Some(self.layout().storage().0.wrapping_add(start).cast())
    }

    /// The places for blocks that are held back: few processes need them.
    pub(super) fn held_ring(&self, runs: &mut Runs, used: &mut usize) -> Option<&'static mut [Held]> {
        let ring = self.piece(runs, used, size_of::<[Held; BLOCKS_MOST]>())?;
        // SAFETY: the piece was handed out just now, and stays committed; it is zero, which is a valid `Held`, and long and aligned enough.
        Some(unsafe { slice::from_raw_parts_mut(ring.cast(), BLOCKS_MOST) })
    }
}

#[cfg(test)]
mod tests;
