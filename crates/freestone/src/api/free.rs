//! Freeing.
#![allow(unsafe_code)]
//!
//! The life of `free(p)`: page of `p` → page map entry → "this thread's, and of which class" in one subtraction → onto the bin.
//! 18 instructions, at most four branches. Null, foreign pointers, blocks of other threads and large blocks all fail one of the tests
//! that are there anyway.
//!
//! Freeing never fails and never changes `errno`: below are raw system calls only.
//!
//! # Safety
//! As for C's `free`: `block` was returned by this allocator and nobody uses it any more. What violates that and can be seen is named.

use crate::api::global;
use crate::misuse::{Misuse, misuse};
use crate::size_class::block_bytes;
use crate::span::{Entry, Kind, Owner};
use crate::thread::current::{self, Heap};
use freestone_base::sync::Ordering;
use freestone_base::units::PAGE_BYTES_LOG2;

/// Frees a block; null is nothing.
///
/// # Safety
/// - See the module header.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    let heap = current::get();
    let layout = heap.layout();
    // SAFETY: inside the window the map can be read; a page with this heap's tag is this thread's, and the entry says its class.
    unsafe {
        if let Some(page) = layout.page_of(block.addr())
            && let Some(class) = layout.map.get(page).class_if_owned(heap.tag())
        {
            if heap.push(class, block) {
                free_full(heap, class);
            }
            return;
        }
        free_slow(block);
    }
}

/// Frees a small block of a known class without asking whose it is: flushing the bin finds out.
///
/// # Safety
/// - See the module header; the block is of `class`.
#[inline(always)]
pub unsafe fn free_sized(block: *mut u8, class: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if !current::get().try_push(class, block) {
            free_sized_slow(block, class);
        }
    }
}

/// Looks at a bin that has just run out of room.
#[cold]
#[inline(never)]
unsafe fn free_full(heap: &Heap, class: usize) {
    // SAFETY: the caller's heap is this thread's and alive, for it owned the block.
    unsafe { heap.overflow(class) }
}

/// Frees a block of a known class when the bin had no room, or the thread has no heap.
#[cold]
#[inline(never)]
unsafe fn free_sized_slow(block: *mut u8, class: usize) {
    global::with_heap(|heap| {
        // SAFETY: the caller's promise; the heap is this thread's for the moment.
        unsafe { heap.push_slow(class, block) }
    });
}

/// Frees whatever is not this thread's small block.
///
/// # Safety
/// - See the module header.
#[cold]
#[inline(never)]
pub unsafe fn free_slow(block: *mut u8) {
    if block.is_null() {
        return;
    }
    match locate(block) {
        // SAFETY: the caller's promise.
        Place::Small { entry, class } => unsafe { free_small(block, entry, class) },
        Place::Large { page } => {
            // SAFETY: as above; the block starts this run.
            global::with_heap(|heap| unsafe { heap.free_large(page) });
        }
        Place::Wrong(what) => wrong(what, block),
    }
}

unsafe fn free_small(block: *mut u8, entry: Entry, class: usize) {
    global::with_heap(|heap| {
        let is_mine = entry.class_if_owned(heap.tag()).is_some();
        // SAFETY: the caller's promise. A block whose span has no owner is as good in this bin as anywhere.
        unsafe {
            if is_mine || entry.owner() == Owner::ABANDONED {
                heap.push_slow(class, block);
            } else {
                heap.free_remote(block, class);
            }
        }
    });
}

/// Names a wrong pointer.
#[cold]
pub fn wrong(what: Misuse, block: *mut u8) {
    let number = global::with_heap(|heap| heap.number()).unwrap_or(0);
    misuse(&global::central().settings, what, block.addr(), number);
}

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

/// Finds out what an address is.
#[must_use]
pub fn locate(block: *mut u8) -> Place {
    let layout = global::central().pages.layout();
    let Some(page) = layout.page_of(block.addr()) else { return Place::Wrong(Misuse::Foreign) };
    // SAFETY: inside the window the map can be read.
    let entry = unsafe { layout.map.get(page) };
    if let Some(class) = entry.class() {
        return Place::Small { entry, class };
    }
    if entry == Entry::LARGE && layout.page_start(page as u32) == block {
        return Place::Large { page: page as u32 };
    }
    Place::Wrong(inside_large(page as u32, block).unwrap_or(Misuse::Foreign))
}

/// Whether an address lies inside a large block: looks back for the start. Only wrong programs pay for this.
fn inside_large(page: u32, block: *mut u8) -> Option<Misuse> {
    let central = global::central();
    central.pages.inspect(|state, layout| {
        if page >= state.frontier {
            return None;
        }
        // SAFETY: pages below the frontier have entries and records, and the lock is held.
        let start = (1..=page).rev().find(|&at| unsafe { layout.map.get(at as usize) } != Entry::NONE)?;
        // SAFETY: as above.
        let record = unsafe { &*layout.record(start) };
        let is_inside = record.kind.get() == Kind::Large
            && record.first.load(Ordering::Relaxed) == start
            && page - start < record.pages.get();
        is_inside.then(|| Misuse::Interior {
            block_bytes: (record.pages.get() as usize) << PAGE_BYTES_LOG2,
            offset: block.addr() - layout.page_start(start).addr(),
        })
    })
}

/// Bytes that a block may be used to its end for; 0 for null. A wrong pointer is named, and 0.
///
/// # Safety
/// - `block` is null or was returned by this allocator and not freed.
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    if block.is_null() {
        return 0;
    }
    match locate(block) {
        Place::Small { class, .. } => block_bytes(class),
        // SAFETY: the block starts this run.
        Place::Large { page } => global::with_heap(|heap| unsafe { heap.large_bytes(page) }).unwrap_or(0),
        Place::Wrong(what) => {
            wrong(what, block);
            0
        }
    }
}
