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
use crate::span::trailer::Family;
use crate::span::{Entry, Generation, PageIndex};
use crate::thread::free_block::FreeBlock;
use crate::thread::growth::{small_stays, with_growth_room};
use crate::thread::heap::own::Own;
use crate::thread::large::{self, ALIGN_MAX, NewBlock};
use crate::thread::locate::{Place, locate};
use crate::thread::watched::examine::{examine, watched_span};
use crate::thread::watched::request::{Claim, Request};
use crate::thread::watched::{self, exact_free, large_block, large_marks, resize};
use crate::thread::{double_free, drain, flush, refill};
use core::ptr;
use freestone_os::Os;

/// From this size on moving memory is cheaper than copying it: a system call against 64 OS pages read and written.
const RELOCATE_LEAST: usize = 256 * 1024;

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
        self.allocate_for(Request::new(size, align, Family::C))
    }

    /// Allocates what is asked for; its start is null when memory runs out.
    #[must_use]
    pub(crate) fn allocate_for(self, request: Request) -> NewBlock {
        if let Some(watch) = self.watch() {
            return watched::allocate::allocate(self, watch, request);
        }
        let (size, align) = (request.room, request.align);
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
        // SAFETY: the block is live, and given up (this function's contract).
        unsafe { self.free_as(block, Claim::Nothing) }
    }

    /// Frees a block of which the program says something, which is checked if the block's heap is watched.
    ///
    /// # Safety
    /// - As for [`Own::free`].
    pub(crate) unsafe fn free_as(self, block: *mut u8, claim: Claim) {
        match self.locate(block) {
            Place::Small { entry, class } => {
                if let Some(page) = watched_span(self.shared(), block.addr()) {
                    // SAFETY: no code uses the block any more (this function's contract).
                    return unsafe { exact_free::free(self, (block, entry, class), page, claim) };
                }
                // SAFETY: the block lies in a small span of `class`, and no code uses it any more (this function's contract).
                free_small(self, unsafe { FreeBlock::new(block, class) }, entry);
            }
            Place::Large { page } if large_marks::is_watched(self, page) => {
                // SAFETY: no code uses the block any more (this function's contract).
                unsafe { exact_free::free_large(self, page, claim) }
            }
            // SAFETY: the page starts a large block that no code uses any more (this function's contract).
            Place::Large { page } => unsafe { large::free(self, page) },
            Place::Wrong(what) => self.report(what, block.addr()),
        }
    }

    /// Frees a small block that Rust's allocator handed out for a layout of this size and alignment.
    ///
    /// # Safety
    /// - The block was returned for such a layout by a heap that shares the same parts.
    pub(crate) unsafe fn free_layout(self, block: FreeBlock, size: usize, align: usize) {
        if self.watch().is_none() {
            return flush::push(self, block);
        }
        // SAFETY: no code uses the block any more, which is what the value says.
        unsafe { self.free_as(block.into_node().cast(), Claim::Layout(size, align)) }
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
            Place::Small { entry, class } => match watched_span(self.shared(), block.addr()) {
                Some(page) => {
                    let examined = examine(self, (block, entry, class), page, Claim::Nothing)?;
                    Some(examined.trailer.size)
                }
                None => Some(block_bytes(class)),
            },
            Place::Large { page } if large_marks::is_watched(self, page) => Some(large_marks::asked(self, page).size),
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
            Place::Small { entry, class } if watched_span(self.shared(), block.addr()).is_some() => {
                // SAFETY: the block is the caller's (this function's contract).
                unsafe { resize_watched(self, (block, entry, class), size, align) }
            }
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
            Place::Large { page } if large_marks::is_watched(self, page) => {
                // SAFETY: the page starts a large block, which is the caller's (this function's contract).
                unsafe { large_block::resize(self, page, size) }
            }
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
    let moved = allocate_for_growth(own, usable, Request::new(size, align, Family::C));
    if !moved.is_null() {
        // SAFETY: the old block holds `usable` bytes and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(block, usable.min(size)) };
        // SAFETY: the block is of `class`, and given up (this function's contract).
        free_small(own, unsafe { FreeBlock::new(block, class) }, entry);
    }
    moved
}

/// Resizes a small block of a watched span, where it is or by moving it.
///
/// # Safety
/// - The block is the caller's; it is not used again unless the answer is null.
unsafe fn resize_watched<O: Os>(own: Own<'_, O>, at: (*mut u8, Entry, usize), size: usize, align: usize) -> *mut u8 {
    let Some(page) = watched_span(own.shared(), at.0.addr()) else { return ptr::null_mut() };
    let Some(examined) = examine(own, at, page, Claim::Nothing) else { return ptr::null_mut() };
    if resize::stays(&examined, size) {
        return at.0;
    }
    let moved = allocate_for_growth(own, examined.block.capacity(), examined.request(size, align));
    if !moved.is_null() {
        // SAFETY: the old block holds the size that its trailer says and the new one `size`; they are two blocks, so they do not overlap.
        unsafe { moved.copy_from_nonoverlapping(at.0, examined.trailer.size.min(size)) };
        // SAFETY: the block is given up (this function's contract).
        unsafe { exact_free::free_examined(own, &examined) };
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
    let watched = large_marks::is_watched(own, page).then(|| large_marks::examine(own, page, Claim::Nothing));
    // SAFETY: the page starts a large block, which is the caller's (this function's contract).
    if class_of_aligned(size, align).is_none() && unsafe { own.resize_in_place(block, size) } {
        return block;
    }
    // SAFETY: as above.
    let run_bytes = unsafe { large::bytes(own, page) };
    let (usable, family) = watched.map_or((run_bytes, Family::C), |asked| (asked.size, asked.family));
    let request = Request::new(size, align, family);
    let mut moved = allocate_for_growth(own, usable, request);
    // SAFETY: as above; no code uses the new block yet.
    match unsafe { relocate(own, page, moved) } {
        Moved::Yes => {
            remark(own, moved);
            return moved;
        }
        Moved::No => {}
        Moved::TargetLost => moved = allocate_for_growth(own, usable, request),
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
        unsafe { exact_free::free_large(own, page, Claim::Nothing) };
    } else {
        // SAFETY: as above.
        unsafe { large::free(own, page) };
    }
}

/// Writes the canary of a large block again, the memory of which was another's, if it has one.
fn remark<O: Os>(own: Own<'_, O>, moved: *mut u8) {
    if let Place::Large { page } = locate(own.shared(), moved)
        && large_marks::is_watched(own, page)
    {
        // SAFETY: the block was just allocated for what it is marked for.
        unsafe { large_marks::mark(own, page, large_marks::asked(own, page)) };
    }
}

/// A block for a request in place of a block of `usable` bytes, with room to grow if there is any.
fn allocate_for_growth<O: Os>(own: Own<'_, O>, usable: usize, request: Request) -> *mut u8 {
    let (size, align) = (request.size, request.align);
    let with_room = with_growth_room(usable, size);
    if with_room > size && align <= GRANULE_BYTES {
        let block = if with_room <= SMALL_MAX || own.watch().is_some() {
            own.allocate_for(Request { room: with_room, ..request })
        } else {
            large::allocate_with_growth_room(own, size.max(SMALL_MAX + 1))
        };
        if !block.start.is_null() {
            return block.start;
        }
    }
    own.allocate_for(request).start
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
