//! Handing out a block of a watched heap: a random one of its magazine, which is filled with random free blocks of its current span.
#![allow(unsafe_code)]
//!
//! # Safety
//! A block that was taken out of a span of this heap is the caller's.

use crate::size_class::{block_bytes, class_of_aligned};
use crate::span::trailer::{LEAST_BLOCK_BYTES, Marked, State, TRAILER_BYTES, Trailer};
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::span_owner::take_one_orphaned;
use crate::thread::watched::homecoming::fill_head;
use crate::thread::watched::magazine::capacity;
use crate::thread::watched::request::Request;
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::watched::{empty_block, large_block, release};
use crate::thread::{drain, refill};
use core::ptr;
use freestone_os::Os;

/// The class whose blocks hold what is asked for and a trailer; `None` if that takes a large block.
#[inline(always)]
fn class_for(request: &Request) -> Option<usize> {
    let bytes = request.room.checked_add(TRAILER_BYTES)?.max(LEAST_BLOCK_BYTES);
    class_of_aligned(bytes, request.align)
}

/// Allocates what is asked for; its start is null when memory runs out.
pub(crate) fn allocate<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, request: Request) -> NewBlock {
    if let Some(start) = empty_block::allocate(own, &request) {
        return NewBlock { start, zero: true };
    }
    let Some(class) = class_for(&request) else { return allocate_large(own, watch, request) };
    let at_hand = watch.magazine(class).take(watch.random());
    let Some(start) = at_hand.or_else(|| bring(own, watch, class)) else { return NewBlock::NONE };
    hand_out(own, watch, (start, class), request);
    NewBlock { start, zero: own.shared().secret.erases() }
}

/// Allocates what is asked for, if the magazine of its class has a block; null if not.
#[inline(always)]
pub(crate) fn at_hand<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, request: Request) -> *mut u8 {
    if empty_block::is_wanted(own, &request) {
        return ptr::null_mut();
    }
    let Some(class) = class_for(&request) else { return ptr::null_mut() };
    let Some(start) = watch.magazine(class).take(watch.random()) else { return ptr::null_mut() };
    hand_out(own, watch, (start, class), request);
    start
}

/// Makes a free block, which is out of its span and not handed out, the program's.
#[inline(always)]
fn hand_out<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, (start, class): (*mut u8, usize), request: Request) {
    // SAFETY: a block of a watched span is there, and it was the magazine's or just left the span for us.
    let block = unsafe { Marked::at(start, block_bytes(class), &own.shared().secret) };
    if !block.is_unused() {
        release::check_freed(own, &block);
    }
    block.begin_canary(request.size);
    let align_log2 = request.align.trailing_zeros();
    block.set_trailer(Trailer { state: State::Live(request.family), size: request.size, align_log2 });
    own.bins().count_single_alloc(class);
    watch.count_alloc();
}

#[cold]
#[inline(never)]
fn allocate_large<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, request: Request) -> NewBlock {
    let block = large_block::allocate(own, request);
    if !block.start.is_null() {
        watch.count_alloc();
    }
    block
}

/// Brings blocks of a class into the magazine, half of what it may have at most, and returns one more; `None` when memory runs out.
#[cold]
#[inline(never)]
fn bring<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, class: usize) -> Option<*mut u8> {
    let first = take(own, watch, class)?;
    let (layout, spans) = (own.layout(), own.spans().of(class));
    // One block stays, so that none is taken that a span hands out last.
    let n = spans.n_free(layout).saturating_sub(1).min(capacity(class) as u32 / 2);
    for _ in 0..n {
        let carve = |_: *mut u8| debug_assert!(false, "the span has free blocks");
        let Some((start, _)) = spans.take_single(layout, watch.random(), own.shared().os().os_page_bytes(), carve)
        else {
            break;
        };
        own.accounts().add_free(class, -1);
        if !watch.magazine(class).put(class, start) {
            debug_assert!(false, "the magazine was empty");
        }
    }
    watch.count_brought(n + 1);
    Some(first)
}

/// A block of a class, from the first source that has any; `None` when memory runs out.
fn take<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, class: usize) -> Option<*mut u8> {
    let (shared, layout, spans) = (own.shared(), own.layout(), own.spans().of(class));
    let bytes = block_bytes(class);
    let mut has_drained = false;
    loop {
        let carve = |start: *mut u8| {
            // SAFETY: the block was neither free nor out until now, and is mapped.
            unsafe { Marked::at(start, bytes, &shared.secret) }.set_trailer(Trailer::FRESH);
        };
        if let Some((start, n_carved)) = spans.take_single(layout, watch.random(), shared.os().os_page_bytes(), carve) {
            own.accounts().add_free(class, i64::from(n_carved) - 1);
            return Some(start);
        }
        if !core::mem::replace(&mut has_drained, true) {
            drain::drain(own);
        }
        if !spans.use_fullest_partial(layout) && !refill::adopt(own, class) {
            if own.holdings().is_none() {
                if let Some(block) = take_one_orphaned(shared, class, own.remote().key()) {
                    fill_head(shared, &block);
                    return Some(block.into_node().cast());
                }
            }
            if !refill::use_new_span(own, class) {
                // Memory is short: what waits gives way.
                watch.held().next()?;
                release::release_all(own);
            }
        }
        own.renew_view();
    }
}
