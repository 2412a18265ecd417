//! Where a request goes when the pool has no block left: chosen by type, so that no branch is paid for a choice not made.
//!
//! # Safety
//! The trait is unsafe to implement, for its blocks are handed out as the pool's own.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

/// What stands behind a pool.
///
/// # Safety
/// - A block it returns is valid for the layout's bytes, aligned as the layout says, and nobody else's until it is given back.
/// - [`Fallback::allocate_zeroed`]'s are zero.
/// - It does not come back to the pool it stands behind.
pub unsafe trait Fallback {
    /// A block, if there is one.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// A block of zeroes, if there is one.
    fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes a block back that lies outside the pool; `false` if it is known to be none of this fallback's: the pool
    /// then says that the address is foreign.
    ///
    /// # Safety
    /// - The block came from this fallback with this layout and is used by nobody, or the implementation can tell that it did not.
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) -> bool;
}

/// Nothing stands behind the pool: exhaustion is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFallback;

// SAFETY: it returns no block.
unsafe impl Fallback for NoFallback {
    fn allocate(&self, _layout: Layout) -> Option<NonNull<u8>> {
        None
    }
    fn allocate_zeroed(&self, _layout: Layout) -> Option<NonNull<u8>> {
        None
    }
    unsafe fn deallocate(&self, _block: NonNull<u8>, _layout: Layout) -> bool {
        false
    }
}

/// A heap stands behind the pool. It cannot tell its blocks from a stranger's, so with it a foreign pointer is not an error
/// that the pool can see.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapFallback<A>(pub A);

// SAFETY: a heap's blocks are what `GlobalAlloc` promises; a layout of a pool has bytes.
unsafe impl<A: GlobalAlloc> Fallback for HeapFallback<A> {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout has bytes.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }
    fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout has bytes.
        NonNull::new(unsafe { self.0.alloc_zeroed(layout) })
    }
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the block came from this heap with this layout, says the caller.
        unsafe { self.0.dealloc(block.as_ptr(), layout) };
        true
    }
}
