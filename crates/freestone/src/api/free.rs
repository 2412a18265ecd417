//! Freeing.
//!
//! Long because: each way out of the hot path is a function of its own, which saves no registers for the others.
#![allow(unsafe_code)]
//!
//! The life of `free(p)`: page of `p` → page map entry → "this thread's, and of which class" in one subtraction → onto the bin.
//! `hotpath.golden` lists the instructions. Null, foreign and misaligned pointers, blocks of other threads and large blocks all fail one of the
//! tests that are there anyway. One more test finds blocks that may be free already (`span::free_node`).
//!
//! Freeing never fails and never changes `errno`: below are raw system calls only.
//!
//! # Safety
//! As for C's `free`: `block` was returned by this allocator, is not freed, and no code uses it any more. A violation that can be seen is
//! reported (`misuse`).

use crate::api::access;
use crate::api::local_heap::with_heap;
use crate::api::process::PROCESS;
use crate::api::recording;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::Untagged;
use crate::span::family::Family;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Current;
use crate::thread::recorded::{self, RecordedThread};
use crate::thread::watched::request::Claim;
use crate::thread::{current, flush};
use core::alloc::Layout;
use freestone_os::System;

/// Frees a block; does nothing for null.
///
/// # Safety
/// - `block` is null, or was returned by this allocator and is not freed; no code uses it any more.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    // SAFETY: this function's contract is that of `free_at_hand`; the bound is what it may be at most.
    match unsafe { free_at_hand(block, CLASS_BOUND) } {
        AtHand::Freed => {}
        // SAFETY: this function's contract is that of `free_in_page_unclaimed`.
        AtHand::Not(in_page) => unsafe { free_in_page_unclaimed(in_page, block) },
        // SAFETY: this function's contract is that of `free_slow`.
        AtHand::Other => unsafe { free_slow(block) },
    }
}

/// What size classes are below.
pub const CLASS_BOUND: usize = N_CLASSES;

/// What [`free_at_hand`] did.
#[derive(Debug)]
pub enum AtHand {
    /// It freed the block.
    Freed,
    /// Nothing: the class is not below the bound, or the thread's heap does not own the page that the block is in.
    Not(InPage),
    /// Nothing: the block may be anything.
    Other,
}

/// A page, and this thread's heap, which is not known to own it: what `free` has in registers when it leaves its hot path.
#[derive(Debug)]
pub struct InPage {
    /// No placeholder: none has a page in its view.
    heap: Current<'static, System>,
    untagged: Untagged,
}

impl InPage {
    /// Frees the block, of which the program says something. The bound was [`CLASS_BOUND`].
    ///
    /// # Safety
    /// - As for [`free`](fn@free); the block is the one that [`free_at_hand`] said this of.
    #[inline(always)]
    pub unsafe fn free(self, block: *mut u8, claim: Claim) {
        // SAFETY: this function's contract is that of `free_in_page`.
        unsafe { free_in_page(self.heap, claim, self.untagged, block) }
    }
}

/// Frees a small block of this thread if its class is below `bound`. Any other block stays as it is, and so does one that may be free already.
///
/// # Safety
/// - As for [`free`]; `bound` is at most [`CLASS_BOUND`].
#[inline(always)]
pub unsafe fn free_at_hand(block: *mut u8, bound: usize) -> AtHand {
    let heap = current::get();
    let Some((own, untagged)) = heap.untagged_entry(block.addr()) else { return AtHand::Other };
    let Some(class) = untagged.class_below(bound) else { return AtHand::Not(InPage { heap, untagged }) };
    // SAFETY: the page map says that the block is of `class`, and no code uses it any more (this function's contract).
    let block = unsafe { FreeBlock::new(block, class) };
    if block.is_marked() {
        return AtHand::Other;
    }
    if own.bins().push(block) {
        // SAFETY: the heap owns the block's span, so it is no placeholder.
        unsafe { overflow(heap, class) };
    }
    AtHand::Freed
}

/// Frees a block of `size` bytes from C's functions, as [`free`]; the size is checked if the block's heap is watched.
///
/// # Safety
/// - As for [`free`].
#[inline]
pub unsafe fn free_sized(block: *mut u8, size: usize) {
    // SAFETY: this function's contract is that of `free_as`.
    unsafe { free_as(block, Claim::of(Family::C).sized(size)) }
}

/// As [`free_sized`], of a block that was allocated with an alignment.
///
/// # Safety
/// - As for [`free`].
#[inline]
pub unsafe fn free_aligned_sized(block: *mut u8, align: usize, size: usize) {
    // SAFETY: this function's contract is that of `free_as`.
    unsafe { free_as(block, Claim::of(Family::C).sized(size).aligned(align)) }
}

/// Frees a block of which the program says something.
///
/// # Safety
/// - As for [`free`].
#[inline]
unsafe fn free_as(block: *mut u8, claim: Claim) {
    // SAFETY: this function's contract is that of `free_at_hand`; the bound is what it may be at most.
    match unsafe { free_at_hand(block, CLASS_BOUND) } {
        AtHand::Freed => {}
        // SAFETY: this function's contract is that of `InPage::free`.
        AtHand::Not(in_page) => unsafe { in_page.free(block, claim) },
        // SAFETY: this function's contract is that of `free_slow_as`.
        AtHand::Other => unsafe { free_slow_as(block, claim) },
    }
}

/// Frees a block in a thread whose calls are recorded. No code uses the block any more.
#[inline(never)]
fn free_recorded(record: &RecordedThread, block: *mut u8, claim: Claim) {
    let heap = record.enter();
    if let Some((own, class)) = heap.own_class(block.addr()) {
        // SAFETY: the page map says that the block is of `class`, and no code uses it any more, as the callers' contracts say.
        let small = unsafe { FreeBlock::new(block, class) };
        if !small.is_marked() && recording::frees_in_a_word(record, block) {
            if own.bins().push(small) {
                return overflow_recorded(record, heap, class);
            }
            return record.leave(true);
        }
    }
    free_recorded_slow(record, block, claim);
}

/// As [`overflow`], during the call of a thread whose calls are recorded.
#[cold]
#[inline(never)]
fn overflow_recorded(record: &RecordedThread, heap: Current<'_, System>, class: usize) {
    // SAFETY: a thread is recorded only while it has a heap.
    unsafe { overflow(heap, class) };
    record.leave(true);
}

/// As [`free_recorded`], of any block, and however many words the event takes.
#[cold]
#[inline(never)]
fn free_recorded_slow(record: &RecordedThread, block: *mut u8, claim: Claim) {
    // SAFETY: the block was returned by this allocator, is not freed, and no code uses it any more, as the callers' contracts say.
    recording::free(record, block, || unsafe { free_slow_as(block, claim) });
}

/// Frees a small block of a known layout, and of its class, without looking up its owner: flushing the bin does that.
///
/// # Safety
/// - `block` was returned by this allocator for the layout, and is not freed; no code uses it any more.
#[inline(always)]
pub(crate) unsafe fn free_layout(block: *mut u8, class: usize, layout: Layout) {
    // SAFETY: the block is one of `class` that no code uses any more (this function's contract).
    if let Err(block) = current::get().try_push(unsafe { FreeBlock::new(block, class) }) {
        free_layout_slow(block, layout.size(), layout.align());
    }
}

/// Handles a bin that has just run out of room.
///
/// # Safety
/// - The heap is no placeholder.
#[cold]
#[inline(never)]
unsafe fn overflow(heap: Current<'_, System>, class: usize) {
    // SAFETY: the heap is no placeholder (this function's contract).
    flush::overflow(unsafe { heap.assume_own() }, class);
}

/// Frees a block of a known class when the bin had no room, the block may be free already, or the thread has no heap.
#[cold]
#[inline(never)]
fn free_layout_slow(block: FreeBlock, size: usize, align: usize) {
    if let Some(record) = recording::recorded() {
        return free_recorded(record, block.into_node().cast(), Claim::layout(size, align));
    }
    let mut block = Some(block);
    with_heap(|own| {
        if let Some(block) = block.take() {
            // SAFETY: the block was allocated for this layout (the contract of `free_layout`).
            unsafe { own.free_layout(block, size, align) };
        }
    });
    if let Some(block) = block {
        // SAFETY: the block is free.
        unsafe { PROCESS.freed_early.keep(&PROCESS.shared, block.into_node().cast()) };
    }
}

/// As [`InPage::free`]. The parameters are in this order so that the hot path before it moves none: a form of `delete` gets the size as the second one.
///
/// # Safety
/// - As for [`InPage::free`].
#[cold]
#[inline(never)]
unsafe fn free_in_page(heap: Current<'static, System>, claim: Claim, untagged: Untagged, block: *mut u8) {
    // SAFETY: this function's contract is that of `free_remote`.
    if unsafe { !free_remote(InPage { heap, untagged }, block) } {
        // SAFETY: this function's contract is that of `free_claimed`, and null is in no page.
        unsafe { free_claimed(block, claim) };
    }
}

/// As [`InPage::free`], of a block of which the program says nothing.
///
/// # Safety
/// - As for [`InPage::free`].
#[cold]
#[inline(never)]
unsafe fn free_in_page_unclaimed(in_page: InPage, block: *mut u8) {
    // SAFETY: this function's contract is that of `free_remote`.
    if unsafe { !free_remote(in_page, block) } {
        // SAFETY: this function's contract is that of `free_local_unclaimed`, and null is in no page.
        unsafe { free_local_unclaimed(block) };
    }
}

/// Frees a small block of another heap. `false` of what [`Own::free_remote`](crate::thread::heap::own::Own::free_remote) does not free.
///
/// # Safety
/// - As for [`free`].
#[inline(always)]
unsafe fn free_remote(InPage { heap, untagged }: InPage, block: *mut u8) -> bool {
    // SAFETY: the heap is no placeholder (`InPage`).
    let own = unsafe { heap.assume_own() };
    // SAFETY: no code uses the block any more (this function's contract), and its page has this entry.
    unsafe { own.free_remote(block, untagged.tagged(own.bins().lookup().tag())) }
}

/// Frees whatever is in no page that this thread's heap has at hand, or may be free already; does nothing for null, which is most of what some programs pass.
/// So that takes no more than a test.
///
/// # Safety
/// - As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_slow(block: *mut u8) {
    if block.is_null() {
        return;
    }
    if current::get().is_placeholder() {
        // SAFETY: this function's contract is that of `free_without_heap`.
        unsafe { free_without_heap(block, Claim::of(Family::C)) };
    } else {
        // SAFETY: this function's contract is that of `free_local_unclaimed`.
        unsafe { free_local_unclaimed(block) };
    }
}

/// Frees whatever is not a small block of this thread at hand, of which the program says something; does nothing for null.
///
/// # Safety
/// - As for [`free`].
#[cold]
#[inline(never)]
pub unsafe fn free_slow_as(block: *mut u8, claim: Claim) {
    if !block.is_null() {
        // SAFETY: this function's contract is that of `free_claimed`.
        unsafe { free_claimed(block, claim) };
    }
}

/// As [`free_slow_as`], of a block that is not null. A function of its own, so that freeing a block of another heap saves no registers.
///
/// # Safety
/// - As for [`free`]; `block` is not null.
#[inline(never)]
unsafe fn free_claimed(block: *mut u8, claim: Claim) {
    if current::get().is_placeholder() {
        // SAFETY: this function's contract is that of `free_without_heap`.
        unsafe { free_without_heap(block, claim) };
    } else {
        // SAFETY: this function's contract is that of `free_local`.
        unsafe { free_local(block, claim) };
    }
}

/// As [`free_local`], of a block of which the program says nothing: most are, and what is known of the claim is not tested. A function of its own, so that
/// freeing a block of another heap saves no registers.
///
/// # Safety
/// - As for [`free`]; `block` is not null.
#[inline(never)]
unsafe fn free_local_unclaimed(block: *mut u8) {
    // SAFETY: this function's contract is that of `free_local`.
    unsafe { free_local(block, Claim::of(Family::C)) };
}

/// Frees any block but a small one of another heap that has a slot. One of this thread's heap that is watched is freed here, below the level `full`.
///
/// # Safety
/// - As for [`free`]; `block` is not null.
#[inline(always)]
unsafe fn free_local(block: *mut u8, claim: Claim) {
    // SAFETY: no code uses the block any more (this function's contract).
    if unsafe { !current::get().free_watched(block, claim) } {
        // SAFETY: this function's contract is that of `free_elsewhere`.
        unsafe { free_elsewhere(block, claim) };
    }
}

/// Frees any block when the thread has no heap of its own, or its calls are recorded.
///
/// # Safety
/// - As for [`free`]; `block` is not null.
#[inline(never)]
unsafe fn free_without_heap(block: *mut u8, claim: Claim) {
    match recorded::recorded() {
        Some(record) => free_recorded(record, block, claim),
        // SAFETY: this function's contract is that of `free_elsewhere`.
        None => unsafe { free_elsewhere(block, claim) },
    }
}

/// Frees any block: here if this thread's heap is watched and clears what is freed, or gets its heap now, and its calls are recorded.
///
/// # Safety
/// - As for [`free`]; `block` is not null.
#[inline(never)]
unsafe fn free_elsewhere(block: *mut u8, claim: Claim) {
    match current::get().own() {
        None => {
            if let Some(record) = recording::recorded() {
                return free_recorded(record, block, claim);
            }
        }
        Some(own) => {
            // SAFETY: no code uses the block any more (this function's contract).
            if own.watch().is_some() && unsafe { own.free_watched(block, claim) } {
                return;
            }
        }
    }
    // SAFETY: this function's contract is that of `free_any`, and the block is not null.
    unsafe { free_any(block, claim) }
}

/// Frees any block.
///
/// # Safety
/// - As for [`free`]; `block` is not null.
#[cold]
#[inline(never)]
unsafe fn free_any(block: *mut u8, claim: Claim) {
    // SAFETY: the block is live and no code uses it any more (this function's contract).
    let freed = with_heap(|own| unsafe { own.free_as(block, claim) });
    if freed.is_none() {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { PROCESS.freed_early.keep(&PROCESS.shared, block) };
    }
}

/// Bytes of a block, all of which may be used; 0 for null. An invalid pointer is reported, and the result is 0.
///
/// # Safety
/// - `block` is null, or was returned by this allocator and is not freed.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    // SAFETY: this function's contract is that of `try_usable_size`.
    unsafe { try_usable_size(block) }.unwrap_or(0)
}

/// As [`usable_size`]; `None` for null and for an invalid pointer, which is reported.
///
/// # Safety
/// - As for [`usable_size`].
#[inline]
#[must_use]
pub unsafe fn try_usable_size(block: *mut u8) -> Option<usize> {
    match current::get().small_class(block.addr()) {
        Some(class) => Some(block_bytes(class)),
        None => usable_size_slow(block),
    }
}

#[cold]
#[inline(never)]
fn usable_size_slow(block: *mut u8) -> Option<usize> {
    if block.is_null() {
        return None;
    }
    // A thread gets no heap where no memory is left for one, or in a signal handler that interrupts its start.
    with_heap(|own| own.usable_bytes(block)).unwrap_or_else(|| access::live_size(block.addr()))
}
