//! Changing a block's size: `thread::any` does it, with this thread's heap.
#![allow(unsafe_code)]
//!
//! A small block that stays needs the page map's entry and nothing else; one that moves, this thread's bins.
//!
//! # Safety
//! As for C's `realloc`: `block` was returned by this allocator and is not freed.

use crate::api::alloc::or_enomem;
use crate::api::{global, pressure};
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, block_bytes, class_of};
use crate::thread::any_block::is_possible;
use crate::thread::free_block::FreeBlock;
use crate::thread::growth::{small_stays, with_growth_room};
use crate::thread::locate::{Place, locate};
use crate::thread::{current, flush};
use core::ptr;

/// Makes a block, not null, hold `size` bytes, keeping its contents up to the smaller size, aligned to `align`, a power of two. Null and
/// `ENOMEM` when memory runs out; the block is untouched then.
///
/// # Safety
/// - See the module header.
#[inline]
#[must_use]
pub unsafe fn reallocate(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    match current::get().small_class(block.addr()) {
        Some(class) if small_stays(block_bytes(class), size) => block,
        // SAFETY: the caller's promise.
        _ => unsafe { reallocate_moving(block, size, align) },
    }
}

/// Moves a small block of this thread's to another at once, if there is one in the bin.
///
/// # Safety
/// - See the module header.
#[inline(never)]
unsafe fn reallocate_moving(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    if align <= GRANULE_BYTES
        && let Some((own, class)) = current::get().own_class(block.addr())
    {
        let usable = block_bytes(class);
        let with_room = with_growth_room(usable, size);
        let moved = if with_room <= SMALL_MAX { own.bins().pop(class_of(with_room)) } else { ptr::null_mut() };
        if !moved.is_null() {
            // SAFETY: the old block has `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
            unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
            // SAFETY: the page map says that the block is of `class`, and the caller gives it up.
            flush::push(own, unsafe { FreeBlock::new(block, class) });
            return moved;
        }
    }
    // SAFETY: the block is not freed (the module header).
    unsafe { reallocate_slow(block, size, align) }
}

/// # Safety
/// - See the module header.
#[cold]
#[inline(never)]
unsafe fn reallocate_slow(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let moved = unsafe { attempt(block, size, align) };
    if !moved.is_null() && !global::shared().pages.is_pressed() {
        return moved;
    }
    // SAFETY: as above.
    unsafe { reallocate_under_pressure(moved, block, (size, align)) }
}

/// # Safety
/// - See the module header.
unsafe fn attempt(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    global::with_heap(|own| unsafe { own.reallocate(block, size, align) }).unwrap_or(ptr::null_mut())
}

/// Passes on what an attempt gave, with room made, or another attempt.
///
/// # Safety
/// - See the module header; if `moved` is null the block is as it was.
#[cold]
unsafe fn reallocate_under_pressure(moved: *mut u8, block: *mut u8, (size, align): (usize, usize)) -> *mut u8 {
    // A wrong pointer has been named, and stays wrong.
    let is_short = |moved: &*mut u8| {
        let shared = global::shared();
        moved.is_null() && is_possible(&shared.pages, size, align) && !matches!(locate(shared, block), Place::Wrong(_))
    };
    // SAFETY: the caller's promise.
    or_enomem(pressure::watch(moved, is_short, || unsafe { attempt(block, size, align) }))
}
