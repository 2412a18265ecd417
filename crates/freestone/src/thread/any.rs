//! Any block, whatever it is: the slow ways of allocating, freeing and resizing, for every heap alike.
#![allow(unsafe_code)]
//!
//! ```text
//!  address ─▶ outside the window, or entry 0 ─▶ wrong: named
//!         ├─▶ small ─▶ mine or nobody's ─▶ bin
//!         │         └▶ another's ───────▶ outbox
//!         └─▶ large ───────────────────▶ shelf, or page heap
//! ```
//!
//! Resizing keeps a small block as long as the new size fits and fills a quarter of it; a large one grows into the free run behind it and
//! gives its tail back. Otherwise allocate, copy, free; when that fails the block is as it was.
//!
//! # Safety
//! Blocks passed in were returned by a heap that shares the same parts and are not freed; what violates that and can be seen is named. The
//! caller is the heap's thread, and the heap is alive.

use crate::misuse::{Misuse, misuse};
use crate::page::{Moved, PageHeap};
use crate::shared::Shared;
use crate::size_class::{GRANULE_BYTES, SMALL_MAX, block_bytes, class_of_aligned};
use crate::span::{Entry, Kind, Owner, PageIndex};
use crate::thread::ThreadHeap;
use crate::thread::large::LargeBlock;
use core::ptr;
use freestone_base::units::{Bytes, PAGE_BYTES_LOG2, Pages};
use freestone_os::Os;

/// A small block stays as long as this part of it is used: less than what [`QUADRUPLE_MAX`] leaves of a block that has just got room.
const STAY_SHARE: usize = 4;

/// A block that grows in steps gets four times its size up to here, twice from here on. (From 27 bytes by eighths to 32 KiB: seven moves.)
const QUADRUPLE_MAX: usize = 8 * 1024;

/// From this size on moving memory is cheaper than copying it: a system call against 64 OS pages read and written.
const RELOCATE_LEAST: usize = 256 * 1024;

/// Alignments beyond this are refused: nothing sensible asks for them, and the arithmetic stays far from its limits.
const ALIGN_MAX: usize = 1 << 40;

/// What an address is.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In a small span. (Whether it starts a block is for slower paths to see.)
    Small {
        /// Its page map entry.
        entry: Entry,
        /// Its class.
        class: usize,
    },
    /// The start of a large block.
    Large {
        /// Its first page.
        page: u32,
    },
    /// Neither.
    Wrong(Misuse),
}

/// Whether a small block of `usable` bytes stays where it is when it is to hold `size`.
#[inline(always)]
#[must_use]
pub fn small_stays(usable: usize, size: usize) -> bool {
    size <= usable && size.max(GRANULE_BYTES) >= usable / STAY_SHARE
}

/// What a block of `usable` bytes that moves to hold `size` should get. One that grows a little is going to grow again: it gets room, so
/// that a buffer growing in small steps moves a few times, not at every class.
#[inline(always)]
#[must_use]
pub fn with_room(usable: usize, size: usize) -> usize {
    let factor = if usable <= QUADRUPLE_MAX { 4 } else { 2 };
    if size > usable && size < usable.saturating_mul(2) { usable.saturating_mul(factor) } else { size }
}

/// Whether there could be a block of `size` bytes aligned to `align`, if all memory were free. For what is impossible nothing is given
/// back, and nobody is told that memory is short.
#[must_use]
pub fn is_possible<O: Os>(pages: &PageHeap<O>, size: usize, align: usize) -> bool {
    let Some(Pages(n_pages)) = Bytes(size).to_pages() else { return false };
    size <= isize::MAX as usize
        && align <= ALIGN_MAX
        && u32::try_from(align >> PAGE_BYTES_LOG2).is_ok_and(|align_pages| pages.could_hold(n_pages, align_pages))
}

/// Finds out what an address is.
#[must_use]
pub fn locate<O: Os>(shared: &Shared<O>, block: *mut u8) -> Place {
    let (layout, view) = (shared.pages.layout(), shared.pages.view());
    let (Some(page), Some(entry)) = (view.page_of(block.addr()), view.entry(block.addr())) else {
        return Place::Wrong(Misuse::Foreign);
    };
    if let Some(class) = entry.class() {
        return Place::Small { entry, class };
    }
    if entry == Entry::LARGE && ptr::eq(layout.page_start(page as u32), block) {
        return Place::Large { page: page as u32 };
    }
    Place::Wrong(inside_large(shared, page as u32, block).unwrap_or(Misuse::Foreign))
}

/// Whether an address lies inside a large block: looks back for the start. Only wrong programs pay for this.
#[cold]
fn inside_large<O: Os>(shared: &Shared<O>, page: u32, block: *mut u8) -> Option<Misuse> {
    shared.pages.inspect(|state| {
        let runs = &state.runs;
        if page >= runs.high_water().0 {
            return None;
        }
        let start = (1..=page).rev().map(PageIndex).find(|&at| runs.entry(at) != Entry::NONE)?;
        let record = runs.record(start);
        let is_inside =
            record.kind.get() == Kind::Large && record.first_page() == start && page - start.0 < record.n_pages().0;
        let block_bytes = record.n_pages().to_bytes().0;
        let offset = block.addr() - runs.layout().page_start(start.0).addr();
        match runs.entry(start) {
            Entry::CACHED if is_inside && offset == 0 => Some(Misuse::DoubleFree { block_bytes }),
            Entry::LARGE if is_inside => Some(Misuse::Interior { block_bytes, offset }),
            _ => None,
        }
    })
}

impl<O: Os + 'static> ThreadHeap<O> {
    /// Allocates `size` bytes aligned to `align`, a power of two; its start is null when memory runs out.
    ///
    /// # Safety
    /// - The caller is the heap's thread, and the heap is alive.
    #[must_use]
    pub unsafe fn allocate(&self, size: usize, align: usize) -> LargeBlock {
        match class_of_aligned(size, align) {
            Some(class) => {
                let block = self.pop(class);
                // SAFETY: the caller's promise.
                let start = if block.is_null() { unsafe { self.refill(class) } } else { block };
                LargeBlock { start, zero: false }
            }
            None if size > isize::MAX as usize || align > ALIGN_MAX => LargeBlock::NONE,
            None => self.allocate_large(size, align),
        }
    }

    /// Frees a block, not null. Counted; never fails.
    ///
    /// # Safety
    /// - See the module header; nobody uses the block any more.
    pub unsafe fn free(&self, block: *mut u8) {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            match self.locate(block) {
                Place::Small { entry, class } => self.free_small(block, entry, class),
                Place::Large { page } => self.free_large(page),
                Place::Wrong(what) => self.wrong(what, block),
            }
        }
    }

    /// Finds out what an address is; from now on, the hot paths see as far.
    ///
    /// # Safety
    /// - The heap is alive, and the caller is its thread.
    unsafe fn locate(&self, block: *mut u8) -> Place {
        // SAFETY: the heap is alive, and the caller's (the caller's promise).
        unsafe {
            self.renew_view();
            locate(self.shared(), block)
        }
    }

    /// Frees a small block, whoever owns its span.
    ///
    /// # Safety
    /// - As for [`ThreadHeap::free`]; `entry` is that of the block's page, and `class` what it says.
    unsafe fn free_small(&self, block: *mut u8, entry: Entry, class: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            // A block whose span has no owner is as good in this bin as anywhere.
            if entry.class_if_owned(self.tag()).is_some() || entry.owner() == Owner::ABANDONED {
                self.push_slow(class, block);
            } else {
                self.free_remote(block, class, entry.owner());
            }
        }
    }

    /// Bytes that a block, not null, may be used to its end for; `None` for a wrong pointer, which is named.
    ///
    /// # Safety
    /// - See the module header.
    #[must_use]
    pub unsafe fn usable_bytes(&self, block: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.locate(block) {
                Place::Small { class, .. } => Some(block_bytes(class)),
                Place::Large { page } => Some(self.large_bytes(page)),
                Place::Wrong(what) => {
                    self.wrong(what, block);
                    None
                }
            }
        }
    }

    /// Makes a block, not null, hold `size` bytes, keeping its contents up to the smaller size, aligned to `align`, a power of two; null
    /// when memory runs out, and the block is untouched then.
    ///
    /// # Safety
    /// - See the module header. The old pointer is not used again unless the answer is null.
    #[must_use]
    pub unsafe fn reallocate(&self, block: *mut u8, size: usize, align: usize) -> *mut u8 {
        // SAFETY: the caller's promise, for all of the body.
        unsafe {
            match self.locate(block) {
                Place::Small { class, .. } if small_stays(block_bytes(class), size) => block,
                Place::Small { entry, class } => {
                    let usable = block_bytes(class);
                    let moved = self.allocate_for_growth(usable, size, align);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, usable.min(size));
                        self.free_small(block, entry, class);
                    }
                    moved
                }
                Place::Large { page } => {
                    if class_of_aligned(size, align).is_none() && self.resize_large(page, size) {
                        return block;
                    }
                    let usable = self.large_bytes(page);
                    let mut moved = self.allocate_for_growth(usable, size, align);
                    match self.relocate(page, moved) {
                        Moved::Yes => return moved,
                        Moved::No => {}
                        Moved::TargetLost => moved = self.allocate_for_growth(usable, size, align),
                    }
                    if moved.is_null() {
                        return moved;
                    }
                    moved.copy_from_nonoverlapping(block, usable.min(size));
                    self.free_large(page);
                    moved
                }
                Place::Wrong(what) => {
                    self.wrong(what, block);
                    ptr::null_mut()
                }
            }
        }
    }

    /// A block for `size` bytes that were `usable` so far, with room if there is any.
    ///
    /// # Safety
    /// - See the module header.
    unsafe fn allocate_for_growth(&self, usable: usize, size: usize, align: usize) -> *mut u8 {
        let roomy = with_room(usable, size);
        if roomy > size && align <= GRANULE_BYTES {
            let block = if roomy <= SMALL_MAX {
                // SAFETY: the caller's promise.
                unsafe { self.allocate(roomy, align) }
            } else {
                self.allocate_roomy(size.max(SMALL_MAX + 1))
            };
            if !block.start.is_null() {
                return block.start;
            }
        }
        // SAFETY: as above.
        unsafe { self.allocate(size, align) }.start
    }

    /// Moves the memory of the large block at `page` to another block, if that is a large one that holds it and it is worth a system call.
    ///
    /// # Safety
    /// - See the module header; `moved` is null or a block that nobody uses yet.
    unsafe fn relocate(&self, page: u32, moved: *mut u8) -> Moved {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = self.large_bytes(page);
            match locate(self.shared(), moved) {
                Place::Large { page: to } if bytes >= RELOCATE_LEAST && self.large_bytes(to) >= bytes => {
                    self.relocate_large(page, to)
                }
                _ => Moved::No,
            }
        }
    }

    /// Makes a large block hold `size` bytes where it is; `false` if it is no large block, cannot, or would grow and is of another explicit
    /// heap than this.
    ///
    /// # Safety
    /// - See the module header.
    #[must_use]
    pub unsafe fn resize_in_place(&self, block: *mut u8, size: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            match self.locate(block) {
                Place::Large { page } => self.resize_large(page, size),
                _ => false,
            }
        }
    }

    /// Names a wrong pointer.
    #[cold]
    fn wrong(&self, what: Misuse, block: *mut u8) {
        // SAFETY: the heap is alive.
        misuse(unsafe { self.shared().settings() }, what, block.addr(), self.number());
    }
}

#[cfg(test)]
mod tests;
