//! Any block, small or large: the slow paths of allocating and freeing, for every heap.
#![allow(unsafe_code)]
//!
//! ```text
//!  pointer ─▶ locate ─▶ wrong ─▶ reported
//!                   ├─▶ small ─▶ this heap's, or abandoned ─▶ bin
//!                   │         └▶ another's ────────────────▶ remote-free buffer
//!                   ├─▶ guarded ─▶ its slot (`guarded`)
//!                   └─▶ large ─────────────────────────────▶ large-run cache, or page heap
//! ```
//!
//! # Safety
//! A block that is passed in was returned by a heap that shares the same parts, and is not freed. A violation that is detected is reported.

use crate::misuse::Misuse;
use crate::size_class::{LAST_CLASS, block_bytes, class_of, class_of_aligned};
use crate::span::family::Family;
use crate::span::marked_block::Kind;
use crate::span::{Entry, Generation};
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::{Current, Own};
use crate::thread::large::{self, ALIGN_MAX};
use crate::thread::locate::{Place, locate};
use crate::thread::new_block::NewBlock;
use crate::thread::watched::examine::{examine, watched_span};
use crate::thread::watched::request::{Claim, Request};
use crate::thread::watched::{self, empty_block, exact_free, large_block, large_marks};
use crate::thread::{double_free, drain, flush, profiling, refill, sampling};
use core::ptr;
use freestone_os::Os;

/// More than any processor's address space gives a program: x86-64 with five levels of page tables gives half of 2^57 bytes.
const SIZE_LIMIT: usize = 1 << if usize::BITS == 64 { 56 } else { 31 };

/// Whether some machine could have a block of `size` bytes aligned to `align`. For an impossible request no memory is given back, and the
/// program's callback is not called.
#[must_use]
pub(crate) fn is_possible(size: usize, align: usize) -> bool {
    size < SIZE_LIMIT && align <= ALIGN_MAX
}

impl<O: Os + 'static> Own<'_, O> {
    /// Frees a small block, whose page has this entry: another heap's goes into the buffer for its owner. `false` of any other block, of one that may be free
    /// already, and of one that may be watched: they stay as they are.
    ///
    /// # Safety
    /// - As for [`Own::free`].
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn free_remote(self, block: *mut u8, entry: Entry) -> bool {
        // SAFETY: the page map says of which class the block is, and no code uses it any more (this function's contract).
        let of_class = |class| unsafe { FreeBlock::new(block, class) };
        if let Some((slot, class)) = self.remote().slot_and_class(entry) {
            let block = of_class(class);
            if block.is_marked() {
                return false;
            }
            flush::free_into(self, slot, block);
            return true;
        }
        let abandoned = entry.class_if_owned(Generation::ABANDONED.tag());
        let Some(block) = abandoned.or_else(|| entry.class()).map(of_class) else { return false };
        if block.is_marked() || self.shared().secret.is_drawn() {
            return false;
        }
        match abandoned {
            Some(_) => flush::push(self, block),
            None => free_small(self, block, entry),
        }
        true
    }
}

impl<O: Os + 'static> Current<'_, O> {
    /// Whether the heap is watched, and allocations may take what it has at hand: none of them is guarded.
    pub(crate) fn has_at_hand(self) -> bool {
        self.watched().is_some_and(|(own, ..)| !sampling::is_on(own))
    }

    /// A block of `size` bytes, aligned to 16, that a watched heap has at hand; null if it has none, if some allocations are guarded or freed blocks are cleared, and of a heap that is
    /// not watched.
    #[inline(always)]
    #[must_use]
    pub(crate) fn at_hand(self, size: usize, family: Family) -> *mut u8 {
        match self.watched_and_filling() {
            Some((own, watch, _)) if !sampling::is_on(own) => {
                watched::allocate::at_hand(own, watch, (size, family), Kind::FILLED)
            }
            _ => ptr::null_mut(),
        }
    }

    /// As [`Current::at_hand`], where freed blocks are cleared.
    #[inline(always)]
    #[must_use]
    pub(crate) fn cleared_at_hand(self, size: usize, family: Family) -> *mut u8 {
        match self.watched() {
            Some((own, watch, _)) if watch.secret().erases() && !sampling::is_on(own) => {
                watched::allocate::cleared_at_hand(own, watch, (size, family))
            }
            _ => ptr::null_mut(),
        }
    }

    /// Frees a small block of this heap, below the last class, if it is watched, and freed blocks are not cleared; the block is checked. `false` of any other
    /// block, which stays as it is.
    ///
    /// # Safety
    /// - As for [`Own::free`].
    #[inline(always)]
    #[must_use]
    pub(crate) unsafe fn free_watched(self, block: *mut u8, claim: Claim) -> bool {
        let Some((own, watch, lookup)) = self.watched_and_filling() else { return false };
        let at = lookup.own_page_and_class(block.addr()).filter(|&(_, class)| class < LAST_CLASS);
        let Some(at) = at else { return false };
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { exact_free::free_own(own, watch, (block, at), claim, Kind::FILLED) };
        true
    }
}

impl<O: Os + 'static> Own<'_, O> {
    /// Allocates `size` bytes aligned to `align`, a power of two; its start is null when memory runs out.
    #[must_use]
    pub(crate) fn allocate(self, size: usize, align: usize) -> NewBlock {
        self.allocate_for(Request::new(size, align, Family::C))
    }

    /// Frees a small block of this heap if it is watched, which is checked. `false` of any other block, which stays as it is.
    ///
    /// # Safety
    /// - As for [`Own::free`].
    #[must_use]
    #[inline(never)]
    pub(crate) unsafe fn free_watched(self, block: *mut u8, claim: Claim) -> bool {
        let Some((watch, lookup)) = self.heap().watched().get_with_lookup() else { return false };
        let Some(at) = lookup.own_page_and_class(block.addr()) else { return false };
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { exact_free::free_own(self, watch, (block, at), claim, Kind::of(block_bytes(at.1), watch.secret())) };
        true
    }

    /// A sampled block in place of the first of a bin, if that is chosen, for an allocation aligned to 16; null otherwise, or if [`Own::allocate_for`] has to
    /// decide.
    #[inline(always)]
    #[must_use]
    pub(crate) fn allocate_sampled(self, request: &Request) -> *mut u8 {
        sampling::sample_first(self, class_of(request.room), request)
    }

    /// Allocates what is asked for; its start is null when memory runs out.
    #[must_use]
    pub(crate) fn allocate_for(self, request: Request) -> NewBlock {
        let (size, align) = (request.room, request.align);
        let watch = self.watch();
        // A watched heap's blocks have trailers. What is sampled counts as one of the class that it has then, and others of that class are told.
        let class = match watch {
            Some(_) => watched::allocate::class_for(&request),
            None => class_of_aligned(size, align),
        };
        if let Some(class) = class {
            if let Some(block) = sampling::sample(self, class, &request) {
                return block;
            }
        }
        if let Some(watch) = watch {
            return watched::allocate::allocate(self, watch, class, request);
        }
        match class {
            Some(class) => {
                let start = self.bins().pop(class);
                let block = if start.is_null() { self.refill(class) } else { NewBlock { start, zero: false } };
                if block.start.is_null() && profiling::finds_chosen(self, class) {
                    return self.allocate_for(request);
                }
                block
            }
            None if size > isize::MAX as usize || align > ALIGN_MAX => NewBlock::NONE,
            None => large::allocate(self, size, align),
        }
    }

    /// Fills an empty bin and allocates a block from it.
    #[inline(always)]
    fn refill(self, class: usize) -> NewBlock {
        let (start, zero) = refill::refill(self, class);
        let zero = zero && !start.is_null();
        if zero {
            // Where the link was; taking the block cleared its mark.
            // SAFETY: the block was just taken, and has room for a word.
            unsafe { start.cast::<usize>().write(0) };
        }
        NewBlock { start, zero }
    }

    /// Frees a block, not null. Never fails; an invalid pointer is reported.
    ///
    /// # Safety
    /// - `block` was returned by a heap that shares the same parts, is not freed, and no code uses it any more.
    pub(crate) unsafe fn free(self, block: *mut u8) {
        // SAFETY: the block is live, and given up (this function's contract).
        unsafe { self.free_as(block, Claim::NOTHING) }
    }

    /// Frees a block of which the program says something, which is checked if the block's heap is watched.
    ///
    /// # Safety
    /// - As for [`Own::free`].
    pub(crate) unsafe fn free_as(self, block: *mut u8, claim: Claim) {
        // SAFETY: no code uses the block any more (this function's contract).
        if unsafe { self.free_watched(block, claim) } {
            return;
        }
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
            Place::Large { page } => {
                // SAFETY: the page starts a large block.
                let bytes = unsafe { large::bytes(self, page) };
                if let Some(claimed) = claim.size().filter(|claimed| *claimed > bytes && self.is_hardened()) {
                    return self.report(Misuse::WrongSize { size: bytes, claimed }, block.addr());
                }
                // SAFETY: as above, and no code uses the block any more (this function's contract).
                unsafe { large::free(self, page) }
            }
            Place::Guarded => self.free_guarded(block, claim),
            Place::Empty => empty_block::free(self, block, claim),
            Place::Wrong(what) => self.report(what, block.addr()),
        }
    }

    /// Frees a small block that Rust's allocator handed out for a layout of this size and alignment.
    ///
    /// # Safety
    /// - The block was returned for such a layout by a heap that shares the same parts.
    pub(crate) unsafe fn free_layout(self, block: FreeBlock, size: usize, align: usize) {
        if self.watch().is_some() || (self.is_hardened() && block.is_marked()) {
            // SAFETY: no code uses the block any more, which is what the value says.
            unsafe { self.free_as(block.into_node().cast(), Claim::layout(size, align)) }
        } else if let Err(block) = profiling::free_of_rust(self, block) {
            free_unnoticed(self, block);
        }
    }

    /// Finds out what an address is, in the newest view, which the hot paths then use.
    pub(super) fn locate(self, block: *mut u8) -> Place {
        self.renew_view();
        locate(self.shared(), block)
    }

    /// Bytes that a block, not null, has from its start to its end; `None` for an invalid pointer, which is reported.
    #[must_use]
    pub(crate) fn usable_bytes(self, block: *mut u8) -> Option<usize> {
        match self.locate(block) {
            Place::Small { entry, class } => match watched_span(self.shared(), block.addr()) {
                Some(page) => {
                    let examined = examine(self, (block, entry, class), page, Claim::NOTHING)?;
                    Some(examined.fields.size())
                }
                None => Some(block_bytes(class)),
            },
            Place::Large { page } if large_marks::is_watched(self, page) => Some(large_marks::asked(self, page).size),
            // SAFETY: the page starts a large block.
            Place::Large { page } => Some(unsafe { large::bytes(self, page) }),
            Place::Guarded => self.guarded_block(block).map(|block| block.size),
            Place::Empty => empty_block::family(self, block).map(|_| 0),
            Place::Wrong(what) => {
                self.report(what, block.addr());
                None
            }
        }
    }

    /// Whether a block is one of this explicit heap.
    pub(crate) fn has(self, block: *mut u8) -> bool {
        match self.locate(block) {
            Place::Small { class, .. } => self.lookup().own_class(block.addr()) == Some(class),
            Place::Large { page } => {
                self.holdings().is_some_and(|holdings| large::is_of(self.shared(), page, holdings))
            }
            _ => false,
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

/// Frees a small block of Rust's global allocator that did not come into its bin: it was sampled, or the bin has no room.
fn free_unnoticed<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    match own.renew_view().entry(block.address()) {
        Some(entry) if profiling::is_sampled(own, entry.generation()) => free_small(own, block, entry),
        _ => flush::push(own, block),
    }
}

/// Frees a small block whose page has this entry.
pub(super) fn free_small<O: Os>(own: Own<'_, O>, block: FreeBlock, entry: Entry) {
    let is_suspect = own.is_hardened() && block.is_marked();
    if is_suspect {
        // Draining puts what other threads have freed into the bins.
        drain::drain(own);
        if double_free::is_free(own, &block) {
            return own.report(Misuse::DoubleFree { block_bytes: block_bytes(block.class()) }, block.address());
        }
    }
    profiling::forget_small(own, entry.generation(), block.address());
    match entry.generation() {
        generation if generation == own.generation() => flush::push(own, block),
        _ if is_suspect => flush::free_suspect(own, block),
        // A block of an abandoned span may go into any bin.
        Generation::ABANDONED => flush::push(own, block),
        generation if profiling::is_sampled(own, generation) => profiling::give_back(own, block),
        generation => flush::free_remote(own, block, generation),
    }
}

#[cfg(test)]
mod tests;
