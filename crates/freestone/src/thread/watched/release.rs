//! From the quarantine to the magazine, and to the span, when too many blocks wait or memory is short.
#![allow(unsafe_code)]
//!
//! A block that goes to its span, or to its owner, is checked for writes first. One that comes into a magazine is checked when it is handed out.
//!
//! # Safety
//! A block in a quarantine or a magazine is out of its span, and only this heap has it.

use crate::misuse::Misuse;
use crate::page::OwnedRun;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::marked_block::MarkedBlock;
use crate::span::trailer::{State, TRAILER_BYTES, Trailer};
use crate::span::{Entry, PageIndex};
use crate::thread::free_block::{FreeBlock, FreeChain};
use crate::thread::heap::own::Own;
use crate::thread::watched::examine::span_of;
use crate::thread::watched::homecoming::fill_head;
use crate::thread::watched::large_marks;
use crate::thread::watched::quarantine::{OTHERS, Quarantine};
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::{returns, route, spans};
use freestone_os::Os;

/// Lets a freed block that counts as `bytes` wait in a queue of the heap's quarantine: that of its class, or [`OTHERS`]. Those that have waited leave if
/// there is no room.
pub(crate) fn quarantine<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, (start, bytes): (*mut u8, usize), queue: usize) {
    if watch.quarantine().push(start, bytes, queue) {
        make_room(own, watch);
    }
}

/// Takes a block home that another thread freed. One of an explicit heap could not wait in the quarantine of that thread: it waits in the heap's own.
pub(crate) fn take_home<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, block: FreeBlock) {
    fill_head(own.shared(), &block);
    if own.holdings().is_some() {
        let class = block.class();
        return quarantine(own, watch, (block.into_node().cast(), block_bytes(class)), class);
    }
    if let Some(home) = spans::home_of(own.layout(), own.lookup(), block.address()) {
        returns::turn_to(own, home.span.page());
        returns::give_back_first(own, &home, &mut FreeChain::of(block));
    }
}

/// Counts a free, after which a burst may have ended.
pub(crate) fn count_free<O: Os>(own: Own<'_, O>, watch: &WatchedHeap) {
    if watch.live().count_free() {
        settle(own);
    }
}

/// Does what is due after a free that left too much in the quarantine, or few blocks live. When a burst has ended, what is held back is released, and
/// memory goes back: the thread may sleep from now on.
#[cold]
#[inline(never)]
pub(crate) fn settle<O: Os>(own: Own<'_, O>) {
    let Some(watch) = own.watch() else { return };
    if watch.quarantine().is_over() {
        make_room(own, watch);
    }
    if watch.live().ends_burst() {
        release_all(own);
        returns::sweep(own);
    }
}

fn make_room<O: Os>(own: Own<'_, O>, watch: &WatchedHeap) {
    let waiting = watch.quarantine();
    waiting.share(own.n_sharing());
    if waiting.is_over() {
        release(own, watch, false);
    }
}

/// Releases everything that the heap holds back: the quarantine, and the magazines.
pub(crate) fn release_all<O: Os>(own: Own<'_, O>) {
    let Some(watch) = own.watch() else { return };
    release(own, watch, true);
    empty_magazines(own);
}

/// Gives the blocks of all magazines back to their spans.
pub(crate) fn empty_magazines<O: Os>(own: Own<'_, O>) {
    let Some(watch) = own.watch() else { return };
    for class in 0..N_CLASSES {
        while let Some(start) = watch.magazine(class).take(class, 0) {
            release_small(own, watch, start, class);
        }
    }
    returns::turn_to(own, PageIndex::NONE);
}

/// Releases the blocks that have waited, or all.
fn release<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, all: bool) {
    let waiting = watch.quarantine();
    for class in 0..N_CLASSES {
        while let Some(start) = waiting.pop(class, all) {
            if !watch.magazine(class).put(class, start) {
                release_small(own, watch, start, class);
            }
        }
        own.publish_if_much(class, own.bins().live(class));
    }
    release_others(own, watch, all);
}

/// Releases the large blocks and those of other heaps that have waited, or all.
pub(crate) fn release_others<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, all: bool) {
    let waiting = watch.quarantine();
    while let Some(start) = waiting.pop(OTHERS, all) {
        release_other(own, waiting, start);
    }
    returns::turn_to(own, PageIndex::NONE);
}

/// Checks a small block of this heap, and gives it back to its span.
fn release_small<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, start: *mut u8, class: usize) {
    // SAFETY: a block of a watched span is there, and it is this heap's magazine's.
    let block = unsafe { MarkedBlock::at(start, block_bytes(class), watch.secret()) };
    check_released(own, &block, true);
    let layout = watch.layout();
    let is_back = own.lookup().own_page_and_class(start.addr()).is_some_and(|(page, _)| {
        let span = span_of(&layout, page);
        // While OS pages go back, each span is turned to, and each block may be the last of its OS page.
        !own.purge().is_on() && own.spans().put_back(&span, class, start)
    });
    if is_back {
        own.accounts().add_free(class, 1);
    } else {
        // SAFETY: the block is of `class`, out of its span, and held back no more.
        give_back(own, unsafe { FreeBlock::new(start, class) });
    }
}

/// Gives a block back to its span, whatever that leads to, or sends it to its owner.
fn give_back<O: Os>(own: Own<'_, O>, free: FreeBlock) {
    match spans::home_of(own.layout(), own.lookup(), free.address()) {
        Some(home) => {
            returns::turn_to(own, home.span.page());
            returns::give_back_first(own, &home, &mut FreeChain::of(free));
        }
        None => {
            let entry = own.renew_view().entry(free.address()).unwrap_or(Entry::NONE);
            route::send(own, free, entry.generation());
        }
    }
}

/// Releases a block of which the quarantine does not know the class.
#[cold]
#[inline(never)]
fn release_other<O: Os>(own: Own<'_, O>, waiting: &Quarantine, start: *mut u8) {
    let view = own.renew_view();
    let (Some(entry), Some(page)) = (view.entry(start.addr()), view.page_of(start.addr())) else { return };
    match entry.class() {
        Some(class) => release_foreign(own, start, class),
        None => release_large(own, waiting, page),
    }
}

/// Checks a small block of another heap, and sends it to its owner, or to its span if that became this heap's.
fn release_foreign<O: Os>(own: Own<'_, O>, start: *mut u8, class: usize) {
    // SAFETY: a block of a watched span is there, and it is this heap's quarantine's.
    let block = unsafe { MarkedBlock::at(start, block_bytes(class), &own.shared().secret) };
    check_released(own, &block, false);
    // SAFETY: the block is of `class`, out of its span, and held back no more.
    let free = unsafe { FreeBlock::new(start, class) };
    if own.lookup().own_class(start.addr()).is_some() {
        fill_head(own.shared(), &free);
    }
    give_back(own, free);
}

/// As [`check_freed`], of a block that leaves the quarantine or a magazine: nearly all are as they were freed.
#[inline(always)]
fn check_released<O: Os>(own: Own<'_, O>, block: &MarkedBlock, is_own: bool) {
    if !block.is_untouched() {
        check_freed(own, block, is_own);
    }
}

/// Reports what was written to a free block since it was freed. `is_own`: its span was this heap's then. Returns whether it counts as never
/// handed out.
#[cold]
#[inline(never)]
pub(crate) fn check_freed<O: Os>(own: Own<'_, O>, block: &MarkedBlock, is_own: bool) -> bool {
    let os_page_bytes = own.shared().os().os_page_bytes();
    match block.trailer() {
        Some(Trailer { state: State::Fresh, .. }) => return true,
        Some(Trailer { state: State::Freed, size, .. }) => {
            if let Some(offset) = block.freed_damage(size, is_own, os_page_bytes) {
                report_written(own, block, Some(size), offset);
            }
        }
        _ => {
            report_written(own, block, None, block.capacity());
            return true;
        }
    }
    false
}

/// Reports what was written to a free block, of which the program had `size` bytes, if that is known. A crime is reported once.
#[cold]
#[inline(never)]
pub(crate) fn report_written<O: Os>(own: Own<'_, O>, block: &MarkedBlock, size: Option<usize>, offset: usize) {
    let block_bytes = block.capacity() + TRAILER_BYTES;
    own.report(Misuse::WriteAfterFree { block_bytes, size, offset }, block.start().addr());
    match size {
        Some(size) => block.fill(size),
        None => block.renew(own.shared().os().os_page_bytes()),
    }
}

/// Gives a large block to the page heap. It is counted as freed already.
fn release_large<O: Os>(own: Own<'_, O>, waiting: &Quarantine, page: PageIndex) {
    large_marks::check_freed(own, page);
    // SAFETY: the page starts a large block in the quarantine, so it has a record.
    waiting.discount_large(unsafe { own.shared().pages.span(page) }.pages.get());
    // SAFETY: the page starts a large block that no code uses any more.
    let run = unsafe { OwnedRun::at(page) };
    let _ = own.shared().pages.free_or_cache(run, None);
}
