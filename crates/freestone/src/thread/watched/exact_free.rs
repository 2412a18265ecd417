//! Freeing a block of a watched heap.
#![allow(unsafe_code)]
//!
//! ```text
//!  examine ─▶ marked as freed, filled ─▶ this heap's quarantine                    (it is watched)
//!                                     ├▶ the explicit heap's inbox, at once        (an explicit heap is deleted with all it has)
//!                                     └▶ its owner                                 (this heap is not watched)
//! ```
//!
//! # Safety
//! A block that was examined is out of its span and the program's; with the free it is this thread's.

use crate::page::OwnedRun;
use crate::size_class::block_bytes;
use crate::span::marked_block::Kind;
use crate::span::{Entry, Generation, PageIndex, Span, fill};
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use crate::thread::watched::examine::{Examined, examine, examine_own, if_whole};
use crate::thread::watched::quarantine::{OTHERS, Quarantine};
use crate::thread::watched::release::{count_free, quarantine, release_others, settle};
use crate::thread::watched::request::Claim;
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::watched::{large_block, large_marks};
use crate::thread::{large, profiling, route};
use core::slice;
use freestone_base::sync::Ordering;
use freestone_os::Os;

/// Frees the block at `start`, on a page of a span of `class` of this watched heap, if it is one that is out. `kind` is that of the blocks of the class.
///
/// # Safety
/// - If a block that is out starts there, no code uses it any more.
#[inline(always)]
pub(crate) unsafe fn free_own<O: Os>(
    own: Own<'_, O>,
    watch: &WatchedHeap,
    (start, (page, class)): (*mut u8, (PageIndex, usize)),
    claim: Claim,
    kind: Kind,
) {
    let at = (start, class);
    let Some((block, fields)) = if_whole(watch, (page, at), claim, kind) else {
        return free_damaged(own, at, claim);
    };
    block.end((fields, claim.family()), true);
    own.bins().count_single_free(at.1);
    let ends = watch.live().count_free();
    if watch.quarantine().push(at.0, block_bytes(at.1), at.1) || ends {
        settle(own);
    }
}

/// Finds out what is wrong with a block of this heap, and frees it nevertheless if the program has it.
#[cold]
#[inline(never)]
fn free_damaged<O: Os>(own: Own<'_, O>, at: (*mut u8, usize), claim: Claim) {
    let (Some((block, fields)), Some(watch)) = (examine_own(own, at, claim), own.watch()) else { return };
    block.end((fields, fields.state()), true);
    own.bins().count_single_free(at.1);
    quarantine(own, watch, (at.0, block_bytes(at.1)), at.1);
    count_free(own, watch);
}

/// Frees the block at `start`, in the watched span at `page`, if it is one that is out.
///
/// # Safety
/// - If a block that is out starts there, no code uses it any more.
pub(crate) unsafe fn free<O: Os>(own: Own<'_, O>, at: (*mut u8, Entry, usize), page: PageIndex, claim: Claim) {
    if let Some(examined) = examine(own, at, page, claim) {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { free_examined(own, &examined) };
    }
}

/// Frees a block that was examined.
///
/// # Safety
/// - No code uses the block any more.
pub(crate) unsafe fn free_examined<O: Os>(own: Own<'_, O>, examined: &Examined) {
    let Examined { block, fields, class, entry, is_own } = *examined;
    block.end((fields, fields.state()), is_own);
    let generation = entry.generation();
    profiling::forget_small(own, generation, block.start().addr());
    if is_own || generation == Generation::ABANDONED {
        own.bins().count_single_free(class);
    } else {
        own.bins().count_remote_frees(class, 1);
    }
    match own.watch() {
        Some(watch) if is_own || !generation.is_explicit() => {
            let queue = if is_own { class } else { OTHERS };
            quarantine(own, watch, (block.start(), block_bytes(class)), queue);
            if !is_own {
                watch.live().note_foreign();
            }
            count_free(own, watch);
        }
        _ => {
            // SAFETY: the block is of `class`, out of its span, and no code uses it any more (this function's contract).
            route::send(own, unsafe { FreeBlock::new(block.start(), class) }, generation);
        }
    }
}

/// Frees the large block that starts at `page`.
///
/// # Safety
/// - No code uses the block any more.
pub(crate) unsafe fn free_large<O: Os>(own: Own<'_, O>, page: PageIndex, claim: Claim) {
    let asked = large_marks::examine(own, page, claim);
    // SAFETY: the page starts a large block, so it has a record.
    let record = unsafe { own.shared().pages.span(page) };
    let (is_listed, is_counted) = (!record.owner.load(Ordering::Relaxed).is_null(), counts(own, record));
    // SAFETY: no code uses the block any more (this function's contract).
    if unsafe { hold_back(own, page) } {
        return count_large_free(own, is_counted);
    }
    let erases = own.shared().secret.erases();
    if erases {
        // SAFETY: the page starts a large block that no code uses any more (this function's contract).
        unsafe { large_block::erase(own, page, 0) };
    }
    let Some(watch) = own.watch().filter(|_| !is_listed && Quarantine::takes(asked.size)) else {
        // SAFETY: no code uses the block any more (this function's contract).
        unsafe { large::free(own, page) };
        return count_large_free(own, is_counted);
    };
    profiling::forget_large(own, page, record);
    let (start, n_pages) = (own.layout().page_start(page), record.pages.get());
    if !erases {
        // SAFETY: no code uses the block any more (this function's contract).
        fill::write(unsafe { slice::from_raw_parts_mut(start, asked.size) });
    }
    // SAFETY: the block is this thread's now, and its first page has an entry.
    unsafe { own.layout().map.set_one(page, Entry::CACHED) };
    watch.quarantine().count_large(n_pages);
    own.accounts().count_large_free();
    large::publish(own, -(n_pages.to_bytes().0 as i64));
    large::look_if_due(own);
    quarantine(own, watch, (start, Quarantine::bytes_of_large(asked.size)), OTHERS);
    // None of them is handed out from there, so what waits longer than it must is only memory.
    release_others(own, watch, false);
    count_free(own, watch);
}

/// Whether a large block is one of those whose frees the heap counts: any but those of other explicit heaps.
pub(crate) fn counts<O: Os>(own: Own<'_, O>, record: &Span) -> bool {
    own.holdings().is_some() != record.owner.load(Ordering::Relaxed).is_null()
}

/// Counts a large block that is freed, or that has moved, if the heap is watched and counts it.
#[inline(never)]
pub(crate) fn count_large_free<O: Os>(own: Own<'_, O>, is_counted: bool) {
    if let Some(watch) = own.watch().filter(|_| is_counted) {
        count_free(own, watch);
    }
}

/// Frees the large block that starts at `page`, and holds its addresses back: every access to them faults. `false` at levels below `full`, and if that
/// cannot be done: the block is not freed then.
///
/// # Safety
/// - No code uses the block any more.
pub(crate) unsafe fn hold_back<O: Os>(own: Own<'_, O>, page: PageIndex) -> bool {
    if !own.shared().secret.erases() {
        return false;
    }
    // SAFETY: the page starts a large block, so it has a record.
    let record = unsafe { own.shared().pages.span(page) };
    let n_pages = record.pages.get();
    profiling::forget_large(own, page, record);
    // SAFETY: no code uses the block any more (this function's contract).
    let is_held = own.shared().pages.quarantine(unsafe { OwnedRun::at(page) }).is_ok();
    if is_held {
        own.accounts().count_large_free();
        large::publish(own, -(n_pages.to_bytes().0 as i64));
        large::look_if_due(own);
    }
    is_held
}
