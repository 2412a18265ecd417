//! Any block, small or large: the slow paths of allocating, freeing and resizing, for every heap.
#![allow(unsafe_code)]
//!
//! ```text
//!  pointer ─▶ locate ─▶ wrong ─▶ reported
//!                   ├─▶ small ─▶ this heap's, or abandoned ─▶ bin
//!                   │         └▶ another's ────────────────▶ remote-free buffer
//!                   └─▶ large ─────────────────────────────▶ large-run cache, or page heap
//! ```
//!
//! A small block that is resized stays as long as the new size fits and fills a quarter of it; a large one grows into the free run behind it and
//! gives its tail back. Otherwise: allocate, copy, free. When that fails the block is as it was.
//!
//! # Safety
//! A block that is passed in was returned by a heap that shares the same parts, and is not freed. A violation that is detected
//! it is reported.

use crate::misuse::Misuse;
use crate::page::Moved;
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, block_bytes, class_of_aligned};
use crate::span::{Entry, Generation, PageIndex};
use crate::thread::free_block::FreeBlock;
use crate::thread::growth::{small_stays, with_growth_room};
use crate::thread::heap::own::Own;
use crate::thread::large::{self, NewBlock};
use crate::thread::locate::{Place, locate};
use crate::thread::{double_free, drain, flush, refill};
use core::ptr;
use freestone_os::Os;

/// From this size on moving memory is cheaper than copying it: a system call against 64 OS pages read and written.
const RELOCATE_LEAST: usize = 256 * 1024;

/// Alignments beyond this are refused, so that the arithmetic cannot overflow; no program needs them.
const ALIGN_MAX: usize = 1 << 40;

/// More than any processor's address space gives a program: x86-64 with five levels of page tables gives half of 2^57 bytes.
const SIZE_LIMIT: usize = 1 << 56;

/// Whether some machine could have a block of `size` bytes aligned to `align`. For an impossible request no memory is given back, and the
/// program's callback is not called.
#[must_use]
pub(crate) fn is_possible(size: usize, align: usize) -> bool {
    size < SIZE_LIMIT && align <= ALIGN_MAX
}

impl<O: Os + 'static> Own<'_, O> {
    /// Allocates `size` bytes aligned to `align`, a power of two; its start is null when memory runs out.
    #[must_use]
    pub(crate) fn allocate(self, size: usize, align: usize) -> NewBlock {
        match class_of_aligned(size, align) {
            Some(class) => {
                let block = self.bins().pop(class);
                let start = if block.is_null() { refill::refill(self, class) } else { block };
                NewBlock { start, zero: false }
            }
            None if size > isize::MAX as usize || align > ALIGN_MAX => NewBlock::NONE,
            None => large::allocate(self, size, align),
        }
    }

    /// Frees a block, not null. Never fails; an invalid pointer is reported.
    ///
    /// # Safety
    /// - `block` was returned by a heap that shares the same parts, is not freed, and no code uses it any more.
    pub(crate) unsafe fn free(self, block: *mut u8) {
        match self.locate(block) {
            Place::Small { entry, class } => {
                // SAFETY: the block lies in a small span of `class`, and no code uses it any more (this function's contract).
                free_small(self, unsafe { FreeBlock::new(block, class) }, entry);
            }
            // SAFETY: the page starts a large block that no code uses any more (this function's contract).
            Place::Large { page } => unsafe { large::free(self, page) },
            Place::Wrong(what) => self.report(what, block.addr()),
        }
    }

    /// Finds out what an address is, in the newest view, which the hot paths then use.
    fn locate(self, block: *mut u8) -> Place {
        self.renew_view();
        locate(self.shared(), block)
    }

    /// Bytes that a block, not null, has from its start to its end; `None` for an invalid pointer, which is reported.
    #[must_use]
    pub(crate) fn usable_bytes(self, block: *mut u8) -> Option<usize> {
        match self.locate(block) {
            Place::Small { class, .. } => Some(block_bytes(class)),
            // SAFETY: the page starts a large block.
            Place::Large { page } => Some(unsafe { large::bytes(self, page) }),
            Place::Wrong(what) => {
                self.report(what, block.addr());
                None
            }
        }
    }

    /// Makes a block, not null, hold `size` bytes, keeping its contents up to the smaller size, aligned to `align`, a power of two; null
    /// when memory runs out, and the block is untouched then.
    ///
    /// # Safety
    /// - `block` was returned by a heap that shares the same parts, and is not freed. It is not used again unless the result is null.
    #[must_use]
    pub(crate) unsafe fn reallocate(self, block: *mut u8, size: usize, align: usize) -> *mut u8 {
        match self.locate(block) {
            Place::Small { class, .. } if small_stays(block_bytes(class), size) => block,
            Place::Small { entry, class } => {
                // SAFETY: the block lies in a small span of `class`, and is the caller's (this function's contract).
                unsafe { move_small(self, (block, entry, class), size, align) }
            }
            Place::Large { page } => {
                // SAFETY: the page starts a large block, which is the caller's (this function's contract).
                unsafe { resize_large(self, (block, page), size, align) }
            }
            Place::Wrong(what) => {
                self.report(what, block.addr());
                ptr::null_mut()
            }
        }
    }

    /// Makes a large block hold `size` bytes where it is; `false` if it is no large block, cannot, or would grow and is of another explicit
    /// heap than this.
    ///
    /// # Safety
    /// - `block` was returned by a heap that shares the same parts, and is not freed; what is cut off is not used any more.
    #[must_use]
    pub(crate) unsafe fn resize_in_place(self, block: *mut u8, size: usize) -> bool {
        match self.locate(block) {
            // SAFETY: the page starts a large block, which is the caller's (this function's contract).
            Place::Large { page } => unsafe { large::resize(self, page, size) },
            _ => false,
        }
    }
}

/// Frees a small block of a known class, whoever owns it.
pub(crate) fn free_sized<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    if own.is_hardened() && block.is_marked() {
        // SAFETY: the block is free, so no code uses it any more.
        unsafe { own.free(block.into_node().cast()) };
    } else {
        flush::push(own, block);
    }
}

/// Frees a small block whose page has this entry.
fn free_small<O: Os>(own: Own<'_, O>, block: FreeBlock, entry: Entry) {
    let is_suspect = own.is_hardened() && block.is_marked();
    if is_suspect {
        // Draining puts what other threads have freed into the bins.
        drain::drain(own);
        if double_free::is_free(own, &block) {
            return own.report(Misuse::DoubleFree { block_bytes: block_bytes(block.class()) }, block.address());
        }
        if entry.generation() != own.generation() {
            return flush::free_suspect(own, block);
        }
    }
    // A block of an abandoned span may go into any bin.
    if entry.generation() == own.generation() || entry.generation() == Generation::ABANDONED {
        flush::push(own, block);
    } else {
        flush::free_remote(own, block, entry.generation());
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
    let moved = allocate_for_growth(own, usable, size, align);
    if !moved.is_null() {
        // SAFETY: the old block holds `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
        // SAFETY: the block is of `class`, and given up (this function's contract).
        free_small(own, unsafe { FreeBlock::new(block, class) }, entry);
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
    // SAFETY: the page starts a large block, which is the caller's (this function's contract).
    if class_of_aligned(size, align).is_none() && unsafe { large::resize(own, page, size) } {
        return block;
    }
    // SAFETY: as above.
    let usable = unsafe { large::bytes(own, page) };
    let mut moved = allocate_for_growth(own, usable, size, align);
    // SAFETY: as above; no code uses the new block yet.
    match unsafe { relocate(own, page, moved) } {
        Moved::Yes => return moved,
        Moved::No => {}
        Moved::TargetLost => moved = allocate_for_growth(own, usable, size, align),
    }
    if !moved.is_null() {
        // SAFETY: the old block holds `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
        // SAFETY: the block is given up (this function's contract).
        unsafe { large::free(own, page) };
    }
    moved
}

/// A block for `size` bytes that were `usable` so far, with room to grow if there is any.
fn allocate_for_growth<O: Os>(own: Own<'_, O>, usable: usize, size: usize, align: usize) -> *mut u8 {
    let with_room = with_growth_room(usable, size);
    if with_room > size && align <= GRANULE_BYTES {
        let block = if with_room <= SMALL_MAX {
            own.allocate(with_room, align)
        } else {
            large::allocate_with_growth_room(own, size.max(SMALL_MAX + 1))
        };
        if !block.start.is_null() {
            return block.start;
        }
    }
    own.allocate(size, align).start
}

/// Moves the memory of the large block at `page` to another block, if that is a large one that holds it and it is worth a system call.
///
/// # Safety
/// - `page` starts a large block that is the caller's; `moved` is null or a block that no code uses yet.
unsafe fn relocate<O: Os>(own: Own<'_, O>, page: PageIndex, moved: *mut u8) -> Moved {
    let large_bytes = |page| {
        // SAFETY: both pages start large blocks.
        unsafe { large::bytes(own, page) }
    };
    let bytes = large_bytes(page);
    match locate(own.shared(), moved) {
        Place::Large { page: to } if bytes >= RELOCATE_LEAST && large_bytes(to) >= bytes => {
            // SAFETY: both are the caller's, and the second is not shorter.
            unsafe { large::relocate(own, page, to) }
        }
        _ => Moved::No,
    }
}

#[cfg(test)]
mod tests;
