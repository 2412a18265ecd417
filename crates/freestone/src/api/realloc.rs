//! Changing a block's size: `thread::any_block` does it, with this thread's heap.
#![allow(unsafe_code)]
//!
//! A small block that stays needs its page map entry and nothing else; one that moves needs this thread's bins.
//!
//! # Safety
//! As for C's `realloc`: `block` was returned by this allocator and is not freed. A violation that can be seen is reported (`misuse`).

use crate::api::access;
use crate::api::local_heap::with_heap;
use crate::api::recording;
use crate::api::shortage::{self, or_enomem};
use crate::record::recorder::Asked;
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, block_bytes, class_of};
use crate::thread::any_block::is_possible;
use crate::thread::free_block::FreeBlock;
use crate::thread::growth::{grows_a_little, keeps_room, small_stays, with_growth_room};
use crate::thread::heap::own::Own;
use crate::thread::{current, flush};
use core::ptr;
use freestone_os::System;

/// Makes a block hold `size` bytes aligned to `align` bytes, keeping its contents up to the smaller size. Returns the block, which may have
/// moved; null and `ENOMEM` when memory runs out, and then the block is untouched.
///
/// # Safety
/// - `block` was returned by this allocator (it is not null) and is not freed. It is not used again unless the result is null.
/// - `align` is a power of two.
#[inline]
#[must_use]
pub unsafe fn reallocate(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    let Some((own, class)) = current::get().own_class(block.addr()) else {
        // SAFETY: this function's contract is that of `reallocate_elsewhere`.
        return unsafe { reallocate_elsewhere(block, size, align) };
    };
    if small_stays(block_bytes(class), size) {
        return block;
    }
    // SAFETY: this function's contract is that of `reallocate_moving`; the block is this heap's, of this class.
    unsafe { reallocate_moving(own, (block, class), size, align) }
}

/// Moves a small block, of a class, of this thread's to another at once, if there is one in the bin.
///
/// # Safety
/// - As for [`reallocate`]; the block is one of the heap's, of the class.
#[inline(never)]
unsafe fn reallocate_moving(
    own: Own<'_, System>,
    (block, class): (*mut u8, usize),
    size: usize,
    align: usize,
) -> *mut u8 {
    let usable = block_bytes(class);
    let has_grown = own.grown().has(block.addr());
    if has_grown && keeps_room(usable, size) {
        return block;
    }
    let grows = grows_a_little(usable, size);
    let with_room = if has_grown && grows { with_growth_room(usable, size) } else { size };
    if align <= GRANULE_BYTES && with_room <= SMALL_MAX {
        let moved = own.bins().pop(class_of(with_room));
        if !moved.is_null() {
            // SAFETY: `moved` was popped just now and holds `size` bytes or more; `block` holds `usable`; they are two blocks.
            unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
            if grows {
                own.grown().note(moved.addr());
            }
            // SAFETY: the page map says that `block` is of `class`, and it is given up.
            let block = unsafe { FreeBlock::new(block, class) };
            if block.is_marked() {
                // SAFETY: the block is this heap's, and given up.
                unsafe { own.free(block.into_node().cast()) };
            } else {
                flush::push(own, block);
            }
            return moved;
        }
    }
    // SAFETY: this function's contract is that of `reallocate_slow`.
    unsafe { reallocate_slow(block, size, align) }
}

/// Leaves a small block of another owner where it is, if it may stay.
///
/// # Safety
/// - As for [`reallocate`].
#[inline(never)]
unsafe fn reallocate_elsewhere(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    match current::get().small_class(block.addr()) {
        Some(class) if small_stays(block_bytes(class), size) => block,
        // SAFETY: this function's contract is that of `reallocate_slow`.
        _ => unsafe { reallocate_slow(block, size, align) },
    }
}

/// # Safety
/// - As for [`reallocate`].
#[cold]
#[inline(never)]
unsafe fn reallocate_slow(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    if let Some(record) = recording::recorded() {
        return recording::reallocate(record, block, Asked { size, align }, || {
            // SAFETY: this function's contract is that of `reallocate`.
            unsafe { reallocate(block, size, align) }
        });
    }
    // SAFETY: this function's contract is that of `attempt`.
    let moved = unsafe { attempt(block, size, align) };
    if !moved.is_null() && !shortage::is_pressed() {
        return moved;
    }
    // An invalid pointer has been reported, and stays invalid: that is no shortage.
    let is_short =
        |moved: &*mut u8| moved.is_null() && is_possible(size, align) && access::live_size(block.addr()).is_some();
    // SAFETY: a second attempt is made only if the first one returned null, and then the block is as it was.
    or_enomem(shortage::handle(moved, is_short, || unsafe { attempt(block, size, align) }))
}

/// # Safety
/// - As for [`reallocate`].
unsafe fn attempt(block: *mut u8, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the block is live (this function's contract).
    with_heap(|own| unsafe { own.reallocate(block, size, align) }).unwrap_or(ptr::null_mut())
}
