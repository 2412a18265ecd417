//! The standard interfaces: `GlobalAlloc`, and `Allocator` of the crate allocator-api2.
//!
//! A misuse that is detected here, such as a double free, cannot be returned. The block is not freed, and the heap stays intact.
//!
//! # Safety
//! A block that is passed in was allocated by the same heap, and nothing uses it after it is freed: the traits' contract says so, as does
//! [`Tlsf`](crate::Tlsf)'s. `Allocator` also allows requests of 0 bytes, which get a dangling pointer and no block.
#![allow(unsafe_code)]

use crate::locked::{Locked, SharedHeap};
use crate::policy::Policy;
use crate::sharded::Sharded;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use freestone_base::lock::Parking;

fn allocate(heap: &impl SharedHeap, layout: Layout) -> *mut u8 {
    heap.allocate(layout.size(), layout.align()).map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

/// # Safety
/// - `block` is null or was allocated from `heap`, and nothing uses it afterwards.
unsafe fn deallocate(heap: &impl SharedHeap, block: *mut u8) {
    if let Some(block) = NonNull::new(block) {
        // SAFETY: nothing uses the block any more. A refusal changes nothing, and this trait cannot report it.
        let _refused = unsafe { heap.deallocate(block) };
    }
}

/// # Safety
/// - `block` is null or was allocated from `heap`; after success nothing uses it any more.
unsafe fn reallocate(heap: &impl SharedHeap, block: *mut u8, align: usize, bytes: usize) -> *mut u8 {
    let Some(block) = NonNull::new(block) else { return core::ptr::null_mut() };
    // SAFETY: after success nothing uses the old pointer.
    unsafe { heap.reallocate(block, bytes, align) }.map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

// SAFETY: blocks are distinct, aligned and large enough until they are freed; the lock serialises calls.
unsafe impl<P: Policy, W: Parking, const FIRST: usize, const SECOND: usize, const REGIONS: usize> GlobalAlloc
    for Locked<'_, P, W, FIRST, SECOND, REGIONS>
{
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(self, layout)
    }
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block was allocated from this heap, and nothing uses it any more: the trait's contract.
        unsafe { deallocate(self, block) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the block was allocated from this heap, and after success nothing uses it any more: the trait's contract.
        unsafe { reallocate(self, block, layout.align(), bytes) }
    }
}

// SAFETY: blocks are distinct, aligned and large enough until they are freed, each in the shard whose memory it lies in; locks serialise
// calls.
unsafe impl<const SHARDS: usize, P: Policy, W: Parking, const FIRST: usize, const SECOND: usize> GlobalAlloc
    for Sharded<'_, SHARDS, P, W, FIRST, SECOND>
{
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(self, layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block was allocated from this heap, and nothing uses it any more: the trait's contract.
        unsafe { deallocate(self, block) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the block was allocated from this heap, and after success nothing uses it any more: the trait's contract.
        unsafe { reallocate(self, block, layout.align(), bytes) }
    }
}

#[cfg(feature = "allocator-api2")]
mod api2 {
    //! `Allocator`, for the collections that take one on stable Rust.

    use super::{Layout, Locked, NonNull, Parking, Policy, Sharded, SharedHeap};
    use allocator_api2::alloc::{AllocError, Allocator};

    /// No block: an address of the layout's alignment, for requests of 0 bytes.
    fn dangling(layout: Layout) -> NonNull<u8> {
        NonNull::new(core::ptr::without_provenance_mut(layout.align())).unwrap_or(NonNull::dangling())
    }

    fn allocate(heap: &impl SharedHeap, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let bytes = layout.size();
        if bytes == 0 {
            return Ok(NonNull::slice_from_raw_parts(dangling(layout), 0));
        }
        let block = heap.allocate(bytes, layout.align()).map_err(|_| AllocError)?;
        Ok(NonNull::slice_from_raw_parts(block, bytes))
    }

    /// # Safety
    /// - `block` was allocated from `heap` with this layout, and nothing uses it afterwards.
    unsafe fn deallocate(heap: &impl SharedHeap, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: nothing uses the block any more. A refusal changes nothing, and this trait cannot report it.
            let _refused = unsafe { heap.deallocate(block) };
        }
    }

    /// # Safety
    /// - `block` was allocated from `heap` with the layout `old`; after success nothing uses it any more.
    unsafe fn resize(
        heap: &impl SharedHeap,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if old.size() == 0 || new.size() == 0 {
            let moved = allocate(heap, new)?;
            // SAFETY: the caller gives up the old block. One of the two has no bytes, so nothing was to be copied.
            unsafe { deallocate(heap, block, old) };
            return Ok(moved);
        }
        // SAFETY: after success nothing uses the old pointer.
        let moved = unsafe { heap.reallocate(block, new.size(), new.align()) }.map_err(|_| AllocError)?;
        Ok(NonNull::slice_from_raw_parts(moved, new.size()))
    }

    macro_rules! implement_allocator {
        ([$($parameters:tt)*] $heap:ty) => {
            // SAFETY: blocks stay valid while the heap lives, whichever copy of the reference is used.
            unsafe impl<$($parameters)*> Allocator for &$heap {
                #[inline]
                fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                    allocate(*self, layout)
                }
                #[inline]
                unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                    // SAFETY: the block was allocated from this heap, and nothing uses it any more: the trait's contract.
                    unsafe { deallocate(*self, block, layout) }
                }
                unsafe fn grow(
                    &self,
                    block: NonNull<u8>,
                    old: Layout,
                    new: Layout,
                ) -> Result<NonNull<[u8]>, AllocError> {
                    // SAFETY: the block was allocated from this heap, and after success nothing uses it any more: the trait's contract.
                    unsafe { resize(*self, block, old, new) }
                }
                unsafe fn shrink(
                    &self,
                    block: NonNull<u8>,
                    old: Layout,
                    new: Layout,
                ) -> Result<NonNull<[u8]>, AllocError> {
                    // SAFETY: the block was allocated from this heap, and after success nothing uses it any more: the trait's contract.
                    unsafe { resize(*self, block, old, new) }
                }
            }
        };
    }

    implement_allocator!(
        [P: Policy, W: Parking, const FIRST: usize, const SECOND: usize, const REGIONS: usize]
        Locked<'_, P, W, FIRST, SECOND, REGIONS>
    );
    implement_allocator!(
        [const SHARDS: usize, P: Policy, W: Parking, const FIRST: usize, const SECOND: usize]
        Sharded<'_, SHARDS, P, W, FIRST, SECOND>
    );
}
