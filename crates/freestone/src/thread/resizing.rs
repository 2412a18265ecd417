//! Resizing any block, small or large, of any heap.
#![allow(unsafe_code)]
//!
//! A small block that is resized stays as long as the new size fits and fills enough of it (`thread::growth`); a large one grows into the free run behind it, if no
//! dirty memory elsewhere is better, and gives its tail back. Otherwise: allocate, copy, free. When that fails the block is as it was; one that only gets smaller stays then, unless the
//! program could not free it with its new size: a watched block of another heap, if its canary would end elsewhere.
//!
//! # Safety
//! A block that is passed in was returned by a heap that shares the same parts, and is not freed.

use crate::page::{COPIED_MOST, Moved};
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, block_bytes, class_of_aligned};
use crate::span::family::Family;
use crate::span::{Entry, PageIndex};
use crate::thread::any_block::free_small;
use crate::thread::free_block::FreeBlock;
use crate::thread::growth::{grows_a_little, with_growth_room};
use crate::thread::heap::own::Own;
use crate::thread::large;
use crate::thread::locate::{Place, locate};
use crate::thread::new_block::NewBlock;
use crate::thread::watched::examine::{examine, watched_span};
use crate::thread::watched::request::{Claim, Request};
use crate::thread::watched::{empty_block, exact_free, large_block, large_marks, resize};
use core::ptr;
use freestone_base::units::Bytes;
use freestone_os::Os;

/// From this size on moving memory is cheaper than copying it: a system call against 64 OS pages read and written.
const RELOCATE_LEAST: usize = 256 * 1024;

impl<O: Os + 'static> Own<'_, O> {
    /// Makes a block, not null, hold `size` bytes, keeping its contents up to the smaller size, aligned to `align`, a power of two; null
    /// when memory runs out, and the block is untouched then.
    ///
    /// # Safety
    /// - `block` was returned by a heap that shares the same parts, and is not freed. It is not used again unless the result is null.
    #[must_use]
    pub(crate) unsafe fn reallocate(self, block: *mut u8, size: usize, align: usize) -> *mut u8 {
        match self.locate(block) {
            Place::Small { entry, class } if watched_span(self.shared(), block.addr()).is_some() => {
                // SAFETY: the block is the caller's (this function's contract).
                unsafe { resize_watched(self, (block, entry, class), size, align) }
            }
            Place::Small { entry, class } => {
                let usable = block_bytes(class);
                if self.grown().stays(block.addr(), usable, size) {
                    return block;
                }
                // SAFETY: the block lies in a small span of `class`, and is the caller's (this function's contract).
                unsafe { move_small(self, (block, entry, class), size, align) }
            }
            Place::Large { page } => {
                // SAFETY: the page starts a large block, which is the caller's (this function's contract).
                unsafe { resize_large(self, (block, page), size, align) }
            }
            Place::Guarded => resize_guarded(self, block, size, align),
            Place::Empty => resize_empty(self, block, size, align),
            Place::Wrong(what) => {
                self.report(what, block.addr());
                ptr::null_mut()
            }
        }
    }
}

/// Moves a small block, of an entry and a class, to a block of another size.
///
/// # Safety
/// - The block lies in a small span of that class and entry and is the caller's; it is not used again unless the result is null.
unsafe fn move_small<O: Os>(
    own: Own<'_, O>,
    (block, entry, class): (*mut u8, Entry, usize),
    size: usize,
    align: usize,
) -> *mut u8 {
    let usable = block_bytes(class);
    let moved = allocate_for_growth(own, (block, usable), Request::new(size, align, Family::C)).start;
    if !moved.is_null() {
        // SAFETY: the old block holds `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
        // SAFETY: the block is of `class`, and given up (this function's contract).
        free_small(own, unsafe { FreeBlock::new(block, class) }, entry);
    } else if size <= usable {
        return block;
    }
    moved
}

/// Resizes a small block of a watched span, where it is or by moving it.
///
/// # Safety
/// - The block is the caller's; it is not used again unless the answer is null.
unsafe fn resize_watched<O: Os>(own: Own<'_, O>, at: (*mut u8, Entry, usize), size: usize, align: usize) -> *mut u8 {
    let Some(page) = watched_span(own.shared(), at.0.addr()) else { return ptr::null_mut() };
    let Some(examined) = examine(own, at, page, Claim::NOTHING) else { return ptr::null_mut() };
    if resize::stays(own.grown(), &examined, size) {
        return at.0;
    }
    let moved = allocate_for_growth(own, (at.0, examined.block.capacity()), examined.request(size, align)).start;
    if !moved.is_null() {
        // SAFETY: the old block holds the size that its trailer says and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(at.0, examined.fields.size().min(size)) };
        // SAFETY: the block is given up (this function's contract).
        unsafe { exact_free::free_examined(own, &examined) };
    } else if resize::is_cut(&examined, size) {
        return at.0;
    }
    moved
}

/// Moves a guarded block to a block of another size: an access behind the old size is an error until then.
fn resize_guarded<O: Os>(own: Own<'_, O>, block: *mut u8, size: usize, align: usize) -> *mut u8 {
    let Some(asked) = own.guarded_block(block) else { return ptr::null_mut() };
    let (usable, family) = (asked.size, Family::of(asked.kind.family()).unwrap_or(Family::C));
    let moved = allocate_for_growth(own, (block, usable), Request::new(size, align, family)).start;
    if !moved.is_null() {
        // SAFETY: the old block holds `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
        own.free_guarded(block, Claim::NOTHING);
    } else if size <= usable {
        if let Some((_, slot)) = own.shared().guarded.slot_at(block.addr()) {
            slot.forget_family();
        }
        return block;
    }
    moved
}

/// Allocates a block in place of one of no bytes.
fn resize_empty<O: Os>(own: Own<'_, O>, block: *mut u8, size: usize, align: usize) -> *mut u8 {
    let Some(family) = empty_block::family(own, block) else { return ptr::null_mut() };
    let moved = own.allocate_for(Request::new(size, align, family)).start;
    if !moved.is_null() {
        empty_block::free(own, block, Claim::NOTHING);
    }
    moved
}

/// Resizes the large block that starts at `page`, where it is or by moving it.
///
/// # Safety
/// - `page` starts the large block, which is the caller's; it is not used again unless the result is null.
unsafe fn resize_large<O: Os>(
    own: Own<'_, O>,
    (block, page): (*mut u8, PageIndex),
    size: usize,
    align: usize,
) -> *mut u8 {
    let watched = large_marks::is_watched(own, page).then(|| large_marks::examine(own, page, Claim::NOTHING));
    let is_large = class_of_aligned(size, align).is_none();
    // SAFETY: the page starts a large block, which is the caller's (this function's contract).
    let moves = !is_large || large_block::moves(own, page, size) || unsafe { large::prefers_dirty(own, page, size) };
    // SAFETY: as above.
    if !moves && unsafe { own.resize_in_place(block, size) } {
        return block;
    }
    // SAFETY: as above.
    let run_bytes = unsafe { large::bytes(own, page) };
    let (usable, family) = watched.map_or((run_bytes, Family::C), |asked| (asked.size, asked.family));
    let request = Request::new(size, align, family);
    let target = allocate_for_growth(own, (block, usable), request);
    let mut moved = target.start;
    // SAFETY: as above; no code uses the new block yet.
    match unsafe { relocate(own, page, target) } {
        Moved::Yes => {
            remark(own, moved);
            return moved;
        }
        Moved::No => remark(own, moved),
        Moved::TargetLost => moved = allocate_for_growth(own, (block, usable), request).start,
    }
    // SAFETY: as above; the block still has its memory. This is one that should have moved, and memory is short.
    if moved.is_null() && (is_large || size < usable) && unsafe { own.resize_in_place(block, size) } {
        return block;
    }
    if !moved.is_null() {
        // SAFETY: the old block holds `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
        // SAFETY: the block is given up (this function's contract).
        unsafe { free_large(own, page) };
    }
    moved
}

/// Frees a large block that was examined.
///
/// # Safety
/// - `page` starts a large block that no code uses any more.
unsafe fn free_large<O: Os>(own: Own<'_, O>, page: PageIndex) {
    if large_marks::is_watched(own, page) {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { exact_free::free_large(own, page, Claim::NOTHING) };
    } else {
        // SAFETY: as above.
        unsafe { large::free(own, page) };
    }
}

/// Writes the canary of a large block again, if it has one: the memory of the block was another's, or was lost in an attempt to move that.
fn remark<O: Os>(own: Own<'_, O>, moved: *mut u8) {
    if let Place::Large { page } = locate(own.shared(), moved) {
        if large_marks::is_watched(own, page) {
            // SAFETY: the block was just allocated for what it is marked for.
            unsafe { large_marks::mark(own, page, large_marks::asked(own, page)) };
        }
    }
}

/// A block for a request in place of another, of `usable` bytes, with room to grow if that one has grown before. A large one has, or is long enough to grow in steps: its room is free
/// addresses.
fn allocate_for_growth<O: Os>(own: Own<'_, O>, (block, usable): (*mut u8, usize), request: Request) -> NewBlock {
    let (size, align) = (request.size, request.align);
    let grows = grows_a_little(usable, size);
    let mut got = NewBlock::NONE;
    if grows && align <= GRANULE_BYTES && (usable > SMALL_MAX || own.grown().has(block.addr())) {
        got = if size <= SMALL_MAX || own.watch().is_some() {
            own.allocate_for(Request { room: with_growth_room(usable, size), ..request })
        } else {
            large::allocate_with_growth_room(own, Bytes(usable), size)
        };
    }
    if got.start.is_null() {
        got = own.allocate_for(request);
    }
    if grows && size <= SMALL_MAX {
        own.grown().note(got.start.addr());
    }
    got
}

/// Moves the memory of the large block at `page` to another block, if that is a large one and it is worth a system call. The page heap sees that it is long enough.
///
/// # Safety
/// - `page` starts a large block that is the caller's; `target` is nothing or a block that no code uses yet.
unsafe fn relocate<O: Os>(own: Own<'_, O>, page: PageIndex, target: NewBlock) -> Moved {
    // SAFETY: the page starts a large block (this function's contract).
    let bytes = unsafe { large::bytes(own, page) };
    // SAFETY: as above, so it has a record.
    let is_counted = exact_free::counts(own, unsafe { own.shared().pages.span(page) });
    let least = if target.zero { RELOCATE_LEAST } else { COPIED_MOST.to_bytes().0 };
    let result = match locate(own.shared(), target.start) {
        // SAFETY: both are the caller's.
        Place::Large { page: to } if bytes >= least => unsafe { large::relocate(own, page, to) },
        _ => Moved::No,
    };
    // Of two blocks that were handed out one is left.
    exact_free::count_large_free(own, result == Moved::TargetLost || result == Moved::Yes && is_counted);
    result
}

#[cfg(test)]
mod tests;
