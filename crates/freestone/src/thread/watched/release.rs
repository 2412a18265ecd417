//! From the quarantine to the span: a block's contents are checked once more, then it is free.
#![allow(unsafe_code)]
//!
//! # Safety
//! A block in a quarantine is out of its span, and nobody but this heap has it.

use crate::misuse::Misuse;
use crate::page::OwnedRun;
use crate::size_class::block_bytes;
use crate::span::trailer::{Marked, State, Trailer};
use crate::span::{Entry, PageIndex};
use crate::thread::free_block::{FreeBlock, FreeChain};
use crate::thread::heap::own::Own;
use crate::thread::watched::large_marks;
use crate::thread::watched::quarantine::Quarantine;
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::{returns, route, spans};
use freestone_os::Os;

/// Lets a freed block of `bytes` wait in the heap's quarantine; those that came first leave if there is no room.
#[inline]
pub(crate) fn quarantine<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, start: *mut u8, bytes: usize) {
    let waiting = watch.quarantine();
    loop {
        let n = waiting.n_to_leave(bytes, own.shared().usage.n_heaps());
        if n == 0 {
            break;
        }
        release(own, watch, n);
    }
    waiting.push(start, bytes);
}

/// Counts a free. With the last block of a burst, nothing of which is live any more, what waits is released, and memory goes back: the thread may
/// sleep from now on.
#[inline]
pub(crate) fn count_free<O: Os>(own: Own<'_, O>, watch: &WatchedHeap) {
    if watch.count_free() {
        end_burst(own, watch);
    }
}

#[cold]
fn end_burst<O: Os>(own: Own<'_, O>, watch: &WatchedHeap) {
    release(own, watch, u32::MAX);
    returns::sweep(own);
}

/// Releases everything that waits.
pub(crate) fn release_all<O: Os>(own: Own<'_, O>) {
    if let Some(watch) = own.watch() {
        release(own, watch, u32::MAX);
    }
}

/// Releases at most `n` blocks.
#[cold]
fn release<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, n: u32) {
    for _ in 0..n {
        let Some(start) = watch.quarantine().pop() else { break };
        release_one(own, watch.quarantine(), start);
    }
    returns::turn_to(own, PageIndex::NONE);
}

/// Checks a block that leaves the quarantine, and gives it back.
fn release_one<O: Os>(own: Own<'_, O>, waiting: &Quarantine, start: *mut u8) {
    let view = own.renew_view();
    let (Some(entry), Some(page)) = (view.entry(start.addr()), view.page_of(start.addr())) else { return };
    match entry.class() {
        Some(class) => {
            waiting.discount(block_bytes(class));
            release_small(own, start, entry, class);
        }
        None => release_large(own, waiting, page),
    }
}

fn release_small<O: Os>(own: Own<'_, O>, start: *mut u8, entry: Entry, class: usize) {
    // SAFETY: a block of a watched span is there, and it is this heap's quarantine's.
    let block = unsafe { Marked::at(start, block_bytes(class), &own.shared().secret) };
    check_freed(own, &block);
    if let Some(Trailer { state: State::Freed, size, .. }) = block.trailer()
        && let Some(offset) = block.canary_damage(size)
    {
        let what = Misuse::WriteAfterFree { block_bytes: block_bytes(class), size: Some(size), offset };
        own.report(what, start.addr());
        block.write_canary(size);
    }
    // SAFETY: the block is of `class`, out of its span, and in the quarantine no more.
    let free = unsafe { FreeBlock::new(start, class) };
    match spans::home_of(own.layout(), own.lookup(), start.addr()) {
        Some(home) => {
            returns::turn_to(own, home.span.page());
            returns::give_back(own, &home, &mut FreeChain::of(free), 1);
        }
        None => route::send(own, free, entry.generation()),
    }
}

/// Reports what was written to a freed block since.
pub(crate) fn check_freed<O: Os>(own: Own<'_, O>, block: &Marked) {
    let os_page_bytes = own.shared().os().os_page_bytes();
    let block_bytes = block.capacity() + crate::span::trailer::TRAILER_BYTES;
    let (size, offset) = match block.trailer() {
        Some(Trailer { state: State::Freed, size, .. }) => (Some(size), block.fill_damage(size, os_page_bytes)),
        Some(Trailer { state: State::Fresh, .. }) => (None, None),
        _ => (None, (!block.is_tail_purged(os_page_bytes)).then_some(block.capacity())),
    };
    if let Some(offset) = offset {
        own.report(Misuse::WriteAfterFree { block_bytes, size, offset }, block.start().addr());
        // A crime is reported once.
        if let Some(size) = size {
            block.fill(size);
        }
    }
}

/// Gives a large block to the page heap. It is counted as freed already.
fn release_large<O: Os>(own: Own<'_, O>, waiting: &Quarantine, page: PageIndex) {
    waiting.discount(large_marks::asked(own, page).size);
    large_marks::check_freed(own, page);
    // SAFETY: the page starts a large block in the quarantine, so it has a record.
    waiting.discount_large(unsafe { own.shared().pages.span(page) }.pages.get());
    // SAFETY: the block is the quarantine's, and its first page has an entry.
    unsafe { own.layout().map.set_one(page, Entry::LARGE) };
    // SAFETY: the page starts a large block that no code uses any more.
    let run = unsafe { OwnedRun::at(page) };
    let _ = own.shared().pages.free_or_cache(run, None);
}
