//! The `Allocator` traits of the crate allocator-api2 and of the nightly standard library, for [`Freestone`] and [`Heap`].
#![allow(unsafe_code)]
//!
//! Every version of the trait has the same functions, which are written once here, over [`Source`]; the features choose which versions are
//! implemented. (References to an allocator are allocators too: each version of the trait says so itself.)
//!
//! A request of 0 bytes gets a dangling pointer and no block, as with the standard library's own allocator.
//!
//! # Safety
//! The traits' contract: a block that is passed in was allocated by this allocator for the layout that is passed, is not freed, and is not used
//! after it is freed or resized.

use crate::api::explicit_heap::Heap;
use crate::api::global_alloc::Freestone;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

/// What an allocator does with requests of a byte or more.
trait Source {
    /// A block; `None` when memory runs out. With `zeroed` all of it is zero.
    fn allocate(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>>;

    /// Frees a block.
    ///
    /// # Safety
    /// - The block was allocated here for `layout`, and no code uses it any more.
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout);

    /// Makes a block hold `size` bytes with the same alignment, in place where it can stay; `None` when memory runs out, and it is as it was.
    ///
    /// # Safety
    /// - The block was allocated here for `old`, and is not used again unless the result is `None`. `size` is not 0.
    unsafe fn resize(&self, block: NonNull<u8>, old: Layout, size: usize) -> Option<NonNull<u8>>;
}

impl Source for Freestone {
    #[inline(always)]
    fn allocate(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        let allocate = if zeroed { Self::alloc_zeroed } else { Self::alloc };
        // SAFETY: the layout is of a byte or more.
        NonNull::new(unsafe { allocate(self, layout) })
    }

    #[inline(always)]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the block was allocated here for this layout, and no code uses it any more (this function's contract).
        unsafe { self.dealloc(block.as_ptr(), layout) }
    }

    unsafe fn resize(&self, block: NonNull<u8>, old: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the block was allocated here for `old`, and is not used again unless the result is null (this function's contract).
        NonNull::new(unsafe { self.realloc(block.as_ptr(), old, size) })
    }
}

impl Source for Heap {
    fn allocate(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        if zeroed { self.allocate_zeroed(layout) } else { Self::allocate(self, layout) }
    }

    unsafe fn free(&self, block: NonNull<u8>, _layout: Layout) {
        // SAFETY: the block is one of this heap, and no code uses it any more (this function's contract).
        unsafe { self.deallocate(block) }
    }

    unsafe fn resize(&self, block: NonNull<u8>, old: Layout, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the block was allocated here for `old`, and is not used again unless the result is `None` (this function's contract).
        unsafe { self.reallocate(block, old, size) }
    }
}

/// A block of the layout's size, or no block for a size of 0.
#[inline]
fn allocate(source: &impl Source, layout: Layout, zeroed: bool) -> Option<NonNull<[u8]>> {
    let start = match layout.size() {
        // An alignment is not 0.
        0 => NonNull::new(ptr::without_provenance_mut(layout.align()))?,
        _ => source.allocate(layout, zeroed)?,
    };
    Some(NonNull::slice_from_raw_parts(start, layout.size()))
}

/// Frees what [`allocate`] returned.
///
/// # Safety
/// - `block` was allocated by `source` for `layout`, and no code uses it any more.
#[inline]
unsafe fn free(source: &impl Source, block: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: the size is not 0, so there is a block, which no code uses any more (this function's contract).
        unsafe { source.free(block, layout) }
    }
}

/// Resizes what [`allocate`] returned; with `zeroed`, bytes that it did not have are zero.
///
/// # Safety
/// - `block` was allocated by `source` for `old`, and is not used again unless the result is `None`.
unsafe fn resize(
    source: &impl Source,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
    zeroed: bool,
) -> Option<NonNull<[u8]>> {
    if old.size() == 0 || new.size() == 0 || old.align() != new.align() {
        let moved = allocate(source, new, zeroed)?;
        // SAFETY: each holds the smaller of the two sizes, and they are two blocks, or the size is 0.
        unsafe { moved.cast::<u8>().copy_from_nonoverlapping(block, old.size().min(new.size())) };
        // SAFETY: the block is not used again (this function's contract).
        unsafe { free(source, block, old) };
        return Some(moved);
    }
    // SAFETY: the block was allocated by `source` for `old`, and is not used again (this function's contract); the size is not 0.
    let start = unsafe { source.resize(block, old, new.size()) }?;
    if zeroed && new.size() > old.size() {
        // SAFETY: the block holds `new.size()` bytes.
        let added = unsafe { start.add(old.size()) };
        // SAFETY: so many bytes follow there.
        unsafe { added.write_bytes(0, new.size() - old.size()) };
    }
    Some(NonNull::slice_from_raw_parts(start, new.size()))
}

/// Implements a version of the trait, in the module `$alloc`, for a type.
macro_rules! implement {
    ($($alloc:ident)::+, $allocator:ty) => {
        // SAFETY: a block is distinct, as large and as aligned as its layout says, and stays valid until it is freed or the heap is dropped, which a
        // borrow of it prevents; moving the allocator leaves its blocks where they are.
        unsafe impl $($alloc)::+::Allocator for $allocator {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $($alloc)::+::AllocError> {
                allocate(self, layout, false).ok_or($($alloc)::+::AllocError)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $($alloc)::+::AllocError> {
                allocate(self, layout, true).ok_or($($alloc)::+::AllocError)
            }

            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the block was allocated here for `layout`, and no code uses it any more: the trait's contract.
                unsafe { free(self, block, layout) }
            }

            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($alloc)::+::AllocError> {
                // SAFETY: the block was allocated here for `old`, and is not used again after success: the trait's contract.
                unsafe { resize(self, block, old, new, false) }.ok_or($($alloc)::+::AllocError)
            }

            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($alloc)::+::AllocError> {
                // SAFETY: as for `grow`.
                unsafe { resize(self, block, old, new, true) }.ok_or($($alloc)::+::AllocError)
            }

            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, $($alloc)::+::AllocError> {
                // SAFETY: as for `grow`.
                unsafe { resize(self, block, old, new, false) }.ok_or($($alloc)::+::AllocError)
            }
        }
    };
}

#[cfg(feature = "allocator-api2")]
implement!(allocator_api2::alloc, Freestone);
#[cfg(feature = "allocator-api2")]
implement!(allocator_api2::alloc, Heap);
#[cfg(feature = "allocator-api2-02")]
implement!(allocator_api2_02::alloc, Freestone);
#[cfg(feature = "allocator-api2-02")]
implement!(allocator_api2_02::alloc, Heap);
#[cfg(feature = "nightly")]
implement!(core::alloc, Freestone);
#[cfg(feature = "nightly")]
implement!(core::alloc, Heap);
