//! Explicit heaps: memory with a life of its own, given back at once.
#![allow(unsafe_code)]
//!
//! ```text
//!  Heap::new ─▶ allocate, free, from any thread ─▶ drop: every block of it is gone
//! ```
//!
//! A heap is a thread heap behind a lock: whoever holds the lock is its thread. Any thread may free its blocks, by [`Heap::deallocate`] of any
//! heap or by C's `free`: a free by a thread that is not using the heap puts the block into the heap's inbox at once. So when the heap is
//! dropped, every block that was freed before has come home, and the rest is dropped with it.
//!
//! Rust's global `dealloc` is not for them: it trusts the layout and keeps the block in a bin of its thread without asking whose it is, where
//! the block would outlive its heap. (`GlobalAlloc` and `Allocator` ask the same of every allocator: free with the one that allocated.)
//!
//! Cost: the thread heap's, and an uncontended lock; a free by another thread is an atomic operation.
//!
//! # Safety
//! Dropping a heap ends the life of all its blocks: its unsafe constructor makes that the caller's promise.

use crate::api::{free, global, pressure};
use crate::config::Mistake;
use crate::size_class::{block_bytes, class_of_aligned};
use crate::thread::explicit::ExplicitHeap;
use crate::thread::{any_block, upkeep};
use core::alloc::Layout;
use core::ptr::NonNull;
use freestone_base::units::PAGE_BYTES_LOG2;
use freestone_os::Linux;

/// An explicit heap. See the module header.
#[derive(Debug)]
pub struct Heap {
    record: &'static ExplicitHeap<Linux>,
}

// SAFETY: the record is only used under its lock.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
    /// A heap of its own; `None` when memory runs out.
    ///
    /// # Safety
    /// - When the heap is dropped, nobody uses any block allocated from it, and every free of one has returned, or never comes.
    /// - Its blocks are freed by [`Heap::deallocate`] or C's `free`, not by [`GlobalAlloc::dealloc`](core::alloc::GlobalAlloc::dealloc).
    #[must_use]
    pub unsafe fn new() -> Option<Self> {
        if !global::start() {
            return None;
        }
        // SAFETY: what heaps share is a static.
        let record = unsafe { global::threads().birth_of_explicit(global::shared()) }?;
        Some(Self { record })
    }

    /// Lets the heap have at most `bytes`, in whole pages of 64 KiB; `None`: as much as there is.
    ///
    /// # Errors
    /// It has more than that already, or that is less than a page: nothing has changed then.
    pub fn set_limit(&self, bytes: Option<usize>) -> Result<(), Mistake> {
        let limit_pages = bytes.map(|bytes| (bytes >> PAGE_BYTES_LOG2) as u64);
        if limit_pages == Some(0) {
            return Err(Mistake::OutOfRange);
        }
        self.record.set_limit(limit_pages).map_err(|_| Mistake::BelowUse)
    }

    /// Allocates a block of `layout`; `None` when memory runs out, or the heap's limit is reached.
    #[must_use]
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let attempt = || self.record.enter().own().allocate(layout.size(), layout.align()).start;
        let again = || {
            upkeep::flush_all(self.record.enter().own());
            attempt()
        };
        let is_short = |block: &*mut u8| {
            block.is_null() && any_block::is_possible(&global::shared().pages, layout.size(), layout.align())
        };
        NonNull::new(pressure::watch(attempt(), is_short, again))
    }

    /// Frees a block, of this heap or any other.
    ///
    /// # Safety
    /// - The block was returned by Freestone, is not freed, and nobody uses it any more.
    pub unsafe fn deallocate(&self, block: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { free::free(block.as_ptr()) }
    }

    /// Makes a block of `old` layout hold `size` bytes, in this heap; `None` when memory runs out, and the block is untouched.
    ///
    /// # Safety
    /// - The block was returned for `old`, and is not freed. The old pointer is not used again unless the answer is `None`.
    #[must_use]
    pub unsafe fn reallocate(&self, block: NonNull<u8>, old: Layout, size: usize) -> Option<NonNull<u8>> {
        let new = Layout::from_size_align(size, old.align()).ok()?;
        if class_of_aligned(old.size(), old.align()).is_none() && class_of_aligned(size, old.align()).is_none() {
            let entered = self.record.enter();
            // SAFETY: the block is live, and its end is not used any more (this function's contract).
            if unsafe { entered.own().resize_in_place(block.as_ptr(), size) } {
                return Some(block);
            }
        }
        let moved = self.allocate(new)?;
        // SAFETY: both blocks hold that much and do not overlap; the old one is given up.
        unsafe {
            moved.copy_from_nonoverlapping(block, old.size().min(size));
            self.deallocate(block);
        }
        Some(moved)
    }

    /// Bytes that a block for `layout` really has.
    #[must_use]
    pub fn block_bytes(layout: Layout) -> usize {
        class_of_aligned(layout.size(), layout.align()).map_or(layout.size(), block_bytes)
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: no block of the heap is used any more (the promise at `new`), nor is the heap.
        unsafe { global::threads().destroy(self.record) }
    }
}

#[cfg(feature = "allocator-api2")]
mod allocator {
    use super::{Heap, NonNull};
    use allocator_api2::alloc::{AllocError, Allocator, Layout};

    // SAFETY: blocks stay valid until freed or the heap is dropped; a borrow of the heap keeps it alive.
    unsafe impl Allocator for &Heap {
        fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
            let block = Heap::allocate(self, layout).ok_or(AllocError)?;
            Ok(NonNull::slice_from_raw_parts(block, layout.size()))
        }

        unsafe fn deallocate(&self, block: NonNull<u8>, _layout: Layout) {
            // SAFETY: the caller's promise.
            unsafe { Heap::deallocate(self, block) }
        }
    }
}
