//! Rust's global allocator.
#![allow(unsafe_code)]
//!
//! With a layout known at compile time the class is a constant: `Box::new` of a 48-byte type is a pop, its drop a push, both
//! inlined (`docs/architecture.md` shows the assembly). The drop does not ask whose block it is: flushing the bin finds out.
//!
//! # Safety
//! `GlobalAlloc`'s contract; the layouts passed in are those the blocks were allocated with.

use crate::api::{alloc, free, realloc};
use crate::size_class::class_of_aligned;
use core::alloc::{GlobalAlloc, Layout};

/// The process's allocator, for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Freestone;

impl Freestone {
    /// Gives all memory that is free and dirty back to the operating system now, this thread's caches included. Returns the bytes.
    pub fn purge(&self) -> usize {
        crate::api::global::purge()
    }

    /// What the allocator holds now.
    #[must_use]
    pub fn stats(&self) -> crate::Stats {
        crate::api::snapshot::snapshot()
    }
}

// SAFETY: blocks are at least as large and as aligned as their layout says, and belong to the caller until freed.
unsafe impl GlobalAlloc for Freestone {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= crate::size_class::GRANULE_BYTES {
            alloc::allocate(layout.size())
        } else {
            alloc::allocate_aligned(layout.size(), layout.align())
        }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; the class is the one `alloc` took for this layout.
        unsafe {
            match class_of_aligned(layout.size(), layout.align()) {
                Some(class) => free::free_sized(block, class),
                None => free::free_slow(block),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        alloc::allocate_zeroed(layout.size(), layout.align())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if let (Some(old), Some(new)) =
            (class_of_aligned(layout.size(), layout.align()), class_of_aligned(new_size, layout.align()))
        {
            if old == new {
                return block;
            }
            let moved = alloc::allocate_aligned(new_size, layout.align());
            if !moved.is_null() {
                // SAFETY: both blocks hold that much; the old one is given up.
                unsafe {
                    moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
                    free::free_sized(block, old);
                }
            }
            return moved;
        }
        // SAFETY: the caller's promise.
        unsafe { realloc_large(block, layout, new_size) }
    }
}

/// Between a large block and anything. A block that `dealloc` will take for a large one has to be one, and the other way round:
/// unlike C's, a Rust block is freed by its layout.
#[cold]
unsafe fn realloc_large(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    if class_of_aligned(layout.size(), layout.align()).is_none() && class_of_aligned(new_size, layout.align()).is_none()
    {
        // SAFETY: the caller's promise; large stays large.
        return unsafe { realloc::reallocate(block, new_size, layout.align()) };
    }
    let moved = alloc::allocate_aligned(new_size, layout.align());
    if !moved.is_null() {
        // SAFETY: both blocks hold that much; the old one is given up.
        unsafe {
            moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
            free::free(block);
        }
    }
    moved
}
