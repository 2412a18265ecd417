//! Handing out a block of a watched heap: a random one of its magazine, whose place one takes that has waited in the quarantine. If none has, and the magazine
//! has few, it is filled with free blocks of the current span.
#![allow(unsafe_code)]
//!
//! # Safety
//! A block that was taken out of a span of this heap is the caller's.

use crate::size_class::{GRANULE_BYTES, LAST_CLASS, N_CLASSES, SMALL_MAX, block_bytes, class_of, class_of_aligned};
use crate::span::family::Family;
use crate::span::marked_block::purged::straddles;
use crate::span::marked_block::{Kind, MarkedBlock};
use crate::span::single_block::Choice;
use crate::span::trailer::{Fields, LEAST_BLOCK_BYTES, State, TRAILER_BYTES, Trailer, base_of};
use crate::thread::heap::own::Own;
use crate::thread::new_block::NewBlock;
use crate::thread::orphaned::Effort;
use crate::thread::watched::homecoming::fill_head;
use crate::thread::watched::magazine::{capacity, is_short, least};
use crate::thread::watched::request::Request;
use crate::thread::watched::seat::WatchedHeap;
use crate::thread::watched::{empty_block, large_block, release};
use crate::thread::{drain, orphaned, refill};
use core::hint;
use core::ptr::{self, NonNull};
use freestone_os::Os;

/// The class whose blocks hold what is asked for and a trailer; `None` if that takes a large block.
pub(crate) fn class_for(request: &Request) -> Option<usize> {
    let bytes = request.room.checked_add(TRAILER_BYTES)?.max(LEAST_BLOCK_BYTES);
    let fits_last = bytes <= block_bytes(LAST_CLASS) && request.align <= GRANULE_BYTES;
    class_of_aligned(bytes, request.align).or(fits_last.then_some(LAST_CLASS))
}

/// Allocates what is asked for, in a block of the class [`class_for`] it; its start is null when memory runs out.
pub(crate) fn allocate<O: Os>(
    own: Own<'_, O>,
    watch: &WatchedHeap,
    class: Option<usize>,
    request: Request,
) -> NewBlock {
    if let Some(start) = empty_block::allocate(own, &request) {
        return NewBlock { start, zero: true };
    }
    let Some(class) = class else { return allocate_large(own, watch, request) };
    let Some(start) = next_block(own, watch, class) else { return NewBlock::NONE };
    let Request { size, align, family, .. } = request;
    let trailer = Trailer { state: State::Live(family), size, align_log2: align.trailing_zeros() };
    let fields = Fields::with_base(trailer, base_of(block_bytes(class)));
    let start = hand_out_checked(own, (start, class), fields);
    NewBlock { start: start.as_ptr(), zero: own.shared().secret.erases() }
}

/// Hands out a block that was chosen, after a look at what was written to it.
#[cold]
#[inline(never)]
fn hand_out_checked<O: Os>(own: Own<'_, O>, (start, class): (*mut u8, usize), fields: Fields) -> NonNull<u8> {
    // SAFETY: a block of a watched span is there, and it was the magazine's or just left the span for us.
    let block = unsafe { MarkedBlock::at(start, block_bytes(class), &own.shared().secret) };
    let is_fresh = block.if_unused().unwrap_or_else(|| release::check_freed(own, &block, true));
    block.begin((fields.size(), fields), is_fresh);
    count_alloc(own, class);
    // SAFETY: the block is mapped, which nothing at address 0 is.
    unsafe { NonNull::new_unchecked(start) }
}

/// Allocates `size` bytes, aligned as every block is, if the magazine of their class has enough blocks; null if not, and nothing is done. `kind` is
/// that of the heap's blocks below the last class.
#[inline(always)]
pub(crate) fn at_hand<O: Os>(
    own: Own<'_, O>,
    watch: &WatchedHeap,
    (size, family): (usize, Family),
    kind: Kind,
) -> *mut u8 {
    if size > SMALL_MAX - TRAILER_BYTES {
        return ptr::null_mut();
    }
    let class = class_of(size + TRAILER_BYTES);
    // SAFETY: the table has numbers of classes only.
    unsafe { hint::assert_unchecked(class < N_CLASSES) };
    // The class of the smallest block is that of two granules.
    let class = if class == 0 { class_of(LEAST_BLOCK_BYTES) } else { class };
    let Some(start) = watch.choose(class) else { return ptr::null_mut() };
    // SAFETY: a block of a watched span is there, and it was the magazine's.
    let block = unsafe { MarkedBlock::new(start, block_bytes(class), watch.secret(), kind) };
    let fields = Fields::live(family, size);
    let Some(is_fresh) = block.if_unused() else { return hand_out_checked(own, (start, class), fields).as_ptr() };
    block.begin((size, fields), is_fresh);
    own.bins().count_single_alloc(class);
    watch.live().count_alloc();
    start
}

/// As [`at_hand`], where freed blocks are cleared. A block of no bytes is never at hand.
#[inline(always)]
pub(crate) fn cleared_at_hand<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, asked: (usize, Family)) -> *mut u8 {
    if asked.0 == 0 {
        return ptr::null_mut();
    }
    at_hand(own, watch, asked, Kind::CLEARED)
}

/// Counts a small block that becomes the program's.
fn count_alloc<O: Os>(own: Own<'_, O>, class: usize) {
    own.bins().count_single_alloc(class);
    if let Some(watch) = own.watch() {
        watch.live().count_alloc();
    }
}

#[cold]
#[inline(never)]
fn allocate_large<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, request: Request) -> NewBlock {
    let block = large_block::allocate(own, request);
    if !block.start.is_null() {
        watch.live().count_alloc();
    }
    block
}

/// The next block of a class, after those that have waited came into its magazine; `None` when memory runs out.
fn next_block<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, class: usize) -> Option<*mut u8> {
    let (magazine, waiting) = (watch.magazine(class), watch.quarantine());
    while let Some(start) = waiting.waited(class).filter(|&start| magazine.put(class, start)) {
        debug_assert!(!start.is_null());
        waiting.remove(class);
    }
    let brought = if magazine.len() < least(class) { bring(own, watch, class) } else { None };
    let at_hand = || magazine.take(class, watch.choice()).or_else(|| waiting.pop(class, false));
    brought.or_else(at_hand).or_else(|| bring(own, watch, class))
}

/// Makes a block whole that comes out of its span, if OS pages of it were purged. What was written to the others since it was freed is reported.
#[cold]
#[inline(never)]
fn restore<O: Os>(own: Own<'_, O>, start: *mut u8, bytes: usize) {
    let shared = own.shared();
    // SAFETY: the block comes out of a watched span of this heap.
    let block = unsafe { MarkedBlock::at(start, bytes, &shared.secret) };
    if let Some(offset) = block.restore(shared.os().os_page_bytes()) {
        release::report_written(own, &block, None, offset);
    }
}

/// Brings blocks of a class into the magazine, half of what it may have at most and one more, and returns one of them; `None` when memory runs out.
#[cold]
#[inline(never)]
fn bring<O: Os>(own: Own<'_, O>, watch: &WatchedHeap, class: usize) -> Option<*mut u8> {
    let (shared, layout, spans) = (own.shared(), own.layout(), own.spans().of(class));
    let (bytes, wanted) = (block_bytes(class), capacity(class) as u32 / 2 + 1);
    let (magazine, os_page_bytes) = (watch.magazine(class), watch.os_page_bytes());
    let mut has_drained = false;
    own.publish_taken(class, own.bins().live(class));
    loop {
        let mut first = None;
        let carve = |start: *mut u8| {
            // SAFETY: the block was neither free nor out until now, and is mapped.
            unsafe { MarkedBlock::at(start, bytes, watch.secret()) }.renew(os_page_bytes);
        };
        let put = |start: *mut u8| {
            if straddles(start.addr(), bytes, os_page_bytes) {
                restore(own, start, bytes);
            }
            let is_put = if first.is_none() { first.replace(start).is_none() } else { magazine.put(class, start) };
            debug_assert!(is_put, "the magazine has less than a quarter of its blocks");
        };
        let (word, in_order) = (magazine.word(), is_short(class));
        let choice = Choice { n: wanted, random: watch.random(), word, in_order };
        let taken = spans.take_some(&shared.pages, choice, carve, put);
        if let (Some((n_taken, n_carved)), Some(first)) = (taken, first) {
            own.accounts().add_free(class, i64::from(n_carved) - i64::from(n_taken));
            watch.live().count_brought(n_taken);
            magazine.turn_round();
            return Some(magazine.any(class, watch.choice()).map_or(first, |(place, _)| place.replace(first)));
        }
        if !core::mem::replace(&mut has_drained, true) {
            drain::drain_some(own);
            // What came home lets others leave the quarantine, for the magazine.
            if magazine.len() >= least(class).max(1) {
                return magazine.take(class, watch.choice());
            }
        }
        if !spans.use_fullest_partial(layout) && !refill::adopt(own, class) {
            let mut orphaned = orphaned::take_one(own, class, Effort::LITTLE);
            let is_short = orphaned.is_none() && !refill::use_new_span(own, class);
            if is_short {
                orphaned = orphaned::take_one(own, class, Effort::ALL);
            }
            if let Some(block) = orphaned {
                fill_head(shared, &block);
                return Some(block.into_node().cast());
            }
            if is_short {
                // Memory is short: what waits gives way.
                watch.held().next()?;
                release::release_all(own);
            }
        }
        own.renew_view();
    }
}
