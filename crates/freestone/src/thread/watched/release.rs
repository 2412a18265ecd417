//! From the quarantine to the magazine, and from there to the span.
#![allow(unsafe_code)]
//!
//! A block that goes to its span, or to its owner, is checked for writes first. One that comes into a magazine is checked when it is handed out.
//!
//! # Safety
//! A block in a quarantine or a magazine is out of its span, and only this heap has it.

use crate::misuse::Misuse;
use crate::page::OwnedRun;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::trailer::{Marked, State, TRAILER_BYTES, Trailer};
use crate::span::{Entry, PageIndex};
use crate::thread::free_block::{FreeBlock, FreeChain};
use crate::thread::heap::own::Own;
use crate::thread::watched::quarantine::{LEAVE_AT_ONCE, Quarantine};
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::watched::{large_marks, magazine};
use crate::thread::{returns, route, spans};
use freestone_os::Os;

/// Lets a freed block that counts as `bytes` wait in the heap's quarantine; those that came first leave if there is no room. `class`: it is a small
/// block of this heap.
#[inline(always)]
pub(crate) fn quarantine<O: Os>(
    own: Own<'_, O>,
    watch: &WatchedHeap,
    (start, bytes): (*mut u8, usize),
    class: Option<usize>,
) {
    if !watch.quarantine().has_room(bytes) {
        make_room(own, watch, bytes);
    }
    watch.quarantine().push(start, bytes, class);
}

#[cold]
#[inline(never)]
fn make_room<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, bytes: usize) {
    watch.quarantine().share(own.shared().usage.n_heaps());
    while !(watch.quarantine().has_room(bytes) || watch.quarantine().is_empty()) {
        release(own, watch, LEAVE_AT_ONCE);
    }
}

/// Counts a free. With the last block of a burst, nothing of which is live any more, what is held back is released, and memory goes back: the thread
/// may sleep from now on.
#[inline(always)]
pub(crate) fn count_free<O: Os>(own: Own<'_, O>, watch: &WatchedHeap) {
    if watch.count_free() {
        end_burst(own);
    }
}

#[cold]
#[inline(never)]
fn end_burst<O: Os>(own: Own<'_, O>) {
    release_all(own);
    returns::sweep(own);
}

/// Releases everything that the heap holds back: the quarantine, and the magazines.
pub(crate) fn release_all<O: Os>(own: Own<'_, O>) {
    let Some(watch) = own.watch() else { return };
    release(own, watch, u32::MAX);
    empty_magazines(own);
}

/// Gives the blocks of all magazines back to their spans.
pub(crate) fn empty_magazines<O: Os>(own: Own<'_, O>) {
    let Some(watch) = own.watch() else { return };
    (0..N_CLASSES).for_each(|class| spill(own, watch, class, 0));
    returns::turn_to(own, PageIndex::NONE);
}

/// Releases at most `n` blocks.
fn release<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, n: u32) {
    let waiting = watch.quarantine();
    let mut has_spilled = false;
    for _ in 0..n {
        let Some((start, class)) = waiting.pop() else { break };
        let Some(class) = class else {
            release_other(own, waiting, start);
            has_spilled = true;
            continue;
        };
        waiting.discount(block_bytes(class));
        if !watch.magazine(class).put(class, start) {
            spill(own, watch, class, magazine::capacity(class) / 2);
            has_spilled = true;
            if !watch.magazine(class).put(class, start) {
                release_small(own, start, class);
            }
        }
    }
    if has_spilled {
        returns::turn_to(own, PageIndex::NONE);
    }
}

/// Gives blocks of a magazine back to their spans until `left` are left.
fn spill<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, class: usize, left: usize) {
    let magazine = watch.magazine(class);
    while magazine.len() > left {
        let Some(start) = magazine.take(watch.random()) else { return };
        release_small(own, start, class);
    }
}

/// Releases a block of which the quarantine does not say what it is.
fn release_other<O: Os>(own: Own<'_, O>, waiting: &Quarantine, start: *mut u8) {
    let view = own.renew_view();
    let (Some(entry), Some(page)) = (view.entry(start.addr()), view.page_of(start.addr())) else { return };
    match entry.class() {
        Some(class) => {
            waiting.discount(block_bytes(class));
            release_small(own, start, class);
        }
        None => release_large(own, waiting, page),
    }
}

/// Checks a small block, and gives it back to its span or sends it to its owner.
fn release_small<O: Os>(own: Own<'_, O>, start: *mut u8, class: usize) {
    // SAFETY: a block of a watched span is there, and it is this heap's quarantine's or magazine's.
    let block = unsafe { Marked::at(start, block_bytes(class), &own.shared().secret) };
    check_freed(own, &block);
    // SAFETY: the block is of `class`, out of its span, and held back no more.
    let free = unsafe { FreeBlock::new(start, class) };
    match spans::home_of(own.layout(), own.lookup(), start.addr()) {
        Some(home) => {
            returns::turn_to(own, home.span.page());
            returns::give_back(own, &home, &mut FreeChain::of(free), 1);
        }
        None => {
            let entry = own.renew_view().entry(start.addr()).unwrap_or(Entry::NONE);
            route::send(own, free, entry.generation());
        }
    }
}

/// Reports what was written to a free block since it was freed.
#[cold]
#[inline(never)]
pub(crate) fn check_freed<O: Os>(own: Own<'_, O>, block: &Marked) {
    let os_page_bytes = own.shared().os().os_page_bytes();
    match block.trailer() {
        Some(Trailer { state: State::Fresh, .. }) => {}
        Some(Trailer { state: State::Freed, size, .. }) => {
            if let Some(offset) = block.freed_damage(size, os_page_bytes) {
                report_written(own, block, Some(size), offset);
            }
        }
        _ if block.is_tail_purged(os_page_bytes) => {}
        _ => report_written(own, block, None, block.capacity()),
    }
}

/// Reports what was written to a free block, of which the program had `size` bytes. A crime is reported once.
#[cold]
#[inline(never)]
fn report_written<O: Os>(own: Own<'_, O>, block: &Marked, size: Option<usize>, offset: usize) {
    let block_bytes = block.capacity() + TRAILER_BYTES;
    own.report(Misuse::WriteAfterFree { block_bytes, size, offset }, block.start().addr());
    match size {
        Some(size) => {
            block.fill(size);
            block.write_canary(size);
        }
        None => block.set_trailer(Trailer::FRESH),
    }
}

/// Gives a large block to the page heap. It is counted as freed already.
fn release_large<O: Os>(own: Own<'_, O>, waiting: &Quarantine, page: PageIndex) {
    waiting.discount(Quarantine::bytes_of_large(large_marks::asked(own, page).size));
    large_marks::check_freed(own, page);
    // SAFETY: the page starts a large block in the quarantine, so it has a record.
    waiting.discount_large(unsafe { own.shared().pages.span(page) }.pages.get());
    // SAFETY: the block is the quarantine's, and its first page has an entry.
    unsafe { own.layout().map.set_one(page, Entry::LARGE) };
    // SAFETY: the page starts a large block that no code uses any more.
    let run = unsafe { OwnedRun::at(page) };
    let _ = own.shared().pages.free_or_cache(run, None);
}
