//! A full bin: where its blocks go.
//!
//! The hotter half stays; the rest is sorted, block by block, into this heap's spans or towards other owners. A flush gives blocks back span by
//! span: blocks that lie behind each other in the bin often lie in one span.

use crate::misuse::Misuse;
use crate::size_class::{N_CLASSES, block_bytes};
use crate::span::{Generation, PageIndex, View};
use crate::thread::burst::{Course, Ended};
use crate::thread::free_block::{Found, FreeBlock, FreeChain};
use crate::thread::heap::own::Own;
use crate::thread::remote_frees::Slot;
use crate::thread::{capacity, profiling, returns, route, sampling, sharing, spans};
use freestone_os::Os;

/// The most blocks that a bin should hold, given how many heaps the process has, and what the bin has borrowed.
#[inline]
pub(crate) fn bin_capacity<O: Os>(own: Own<'_, O>, class: usize) -> u32 {
    capacity::shared(own_capacity(own, class), block_bytes(class), own.n_sharing(), own.bins().borrowed(class))
}

/// The most blocks that a bin should hold in a process of few heaps.
#[inline]
pub(crate) fn own_capacity<O: Os>(own: Own<'_, O>, class: usize) -> u32 {
    own.bins().capacity(class, || own.shared().settings().bin_start(block_bytes(class)))
}

/// Handles a bin whose room is used up: the heap profile may have withdrawn some.
#[inline(always)]
pub(crate) fn overflow<O: Os>(own: Own<'_, O>, class: usize) {
    if profiling::ends_at_chosen(own, class) {
        choose_or_look(own, class);
    } else {
        look_at_full(own, class);
    }
}

#[cold]
#[inline(never)]
fn choose_or_look<O: Os>(own: Own<'_, O>, class: usize) {
    if !profiling::room_ended(own, class) {
        look_at_full(own, class);
    }
}

/// Flushes a bin if it is full, and grants it room again.
#[cold]
#[inline(never)]
pub(crate) fn look_at_full<O: Os>(own: Own<'_, O>, class: usize) {
    let (bins, burst) = (own.bins(), own.burst());
    let (capacity, flushed) = (bin_capacity(own, class), bins.flushed(class));
    let allowed = i64::from(capacity::allowed(capacity, flushed, block_bytes(class)));
    let in_bin = bins.len(class);
    let len = in_bin + bins.n_aside(class);
    let course = course(own, class, len);
    own.publish_if_much(class, bins.live_beside(class, in_bin));
    let was_awaited = burst.was_awaited(class, course);
    let sends_all = was_awaited || sharing::renews_blocks(own, class, allowed);
    if sends_all || len >= allowed {
        let keep = if sends_all { 0 } else { capacity::kept(capacity, flushed, allowed) };
        bins.count_flushed(class, u32::try_from(len - keep).unwrap_or(u32::MAX));
        burst.count_flushed((len - keep) * block_bytes(class) as i64);
        flush(own, class, keep);
    }
    if was_awaited {
        end_burst(own);
    }
    profiling::grant(own, class, (allowed - bins.len_with_aside(class)).max(0));
    if burst.is_on_watch() {
        await_few(own, class, Course { flushed: bins.flushed(class), ..course });
    }
    sampling::after_overflow(own, class);
}

/// How the blocks of a class go, of which `len` are in its bin. Those of the heap's spans that are out and not in the bin are live: what others have freed is
/// until it is home, and what this thread frees of others does not count. Blocks of others in the bin make it too low, so that a burst ends early. Of a class whose
/// spans are shared, those are live that the thread allocated and has not freed.
#[inline(always)]
fn course<O: Os>(own: Own<'_, O>, class: usize, len: i64) -> Course {
    let live = if sharing::shares_spans(own) { own.bins().live(class) } else { own.spans().of(class).n_out() - len };
    Course { live, flushed: own.bins().flushed(class) }
}

/// As [`course`], of a class whose bin's length the caller does not know.
#[inline(never)]
fn course_of<O: Os>(own: Own<'_, O>, class: usize) -> Course {
    course(own, class, own.bins().len_with_aside(class))
}

/// Grants a bin room only until few of the heap's blocks of its class are live, if it has room for that many.
#[inline]
fn await_few<O: Os>(own: Own<'_, O>, class: usize, course: Course) {
    if let Some(room) = own.burst().await_few(class, course, profiling::whole_room(own, class)) {
        profiling::grant(own, class, room);
        sampling::settle(own, class);
    }
}

/// Ends a burst, of which few blocks are live: empties the bins of all classes of which few are; the others are emptied when few of theirs are. Sweeps the spans
/// when most of those few are freed. So little of the burst stays with a thread that goes idle.
fn end_burst<O: Os>(own: Own<'_, O>) {
    let (bins, burst) = (own.bins(), own.burst());
    let in_use = || (0..N_CLASSES).filter(|&class| own.spans().of(class).n_out() > 0 || !bins.is_empty(class));
    let n_live = in_use().map(|class| course_of(own, class).live.max(0)).sum();
    let Some(ended) = burst.end(n_live) else { return };
    let mut is_over = ended == Ended::Later;
    for class in in_use() {
        let course = course_of(own, class);
        if course.has_few() && !bins.is_empty(class) {
            flush(own, class, 0);
        }
        await_few(own, class, course);
        is_over &= !course.nears_end();
    }
    if is_over {
        returns::sweep(own);
    }
}

/// Puts a freed block into its bin, whatever the room, and handles the bin if that used up its room.
#[inline(always)]
pub(crate) fn push<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    let class = block.class();
    if own.bins().push(block) {
        overflow(own, class);
    }
}

/// Frees a block of another owner: counts the free and sends the block. `generation` is the one in its page's entry.
pub(crate) fn free_remote<O: Os>(own: Own<'_, O>, block: FreeBlock, generation: Generation) {
    own.bins().count_remote_frees(block.class(), 1);
    route::send(own, block, generation);
}

/// As [`free_remote`], of a block whose owner has blocks in `slot`, and whose bytes are not counted there.
#[inline(always)]
pub(crate) fn free_into<O: Os>(own: Own<'_, O>, slot: &Slot, block: FreeBlock) {
    own.bins().count_remote_frees(block.class(), 1);
    route::buffer_uncounted(own, slot, block);
}

/// Frees a block that is not of this heap and may be free already: counts the free, and sends it to where that is found out.
pub(crate) fn free_suspect<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    own.bins().count_remote_frees(block.class(), 1);
    route::route_suspect(own, block);
}

/// Empties a bin, and gives back what room it has borrowed. The next free grants it the room that it may have then.
pub(crate) fn empty<O: Os>(own: Own<'_, O>, class: usize) {
    flush(own, class, 0);
    let borrowed = own.bins().borrowed(class);
    if borrowed > 0 {
        own.shared().usage.room().take_back(class, borrowed);
        own.bins().set_borrowed(class, 0);
    }
    profiling::grant(own, class, 0);
    sampling::settle(own, class);
}

/// Sends all but the first `keep` blocks of a bin to their spans and owners.
pub(crate) fn flush<O: Os>(own: Own<'_, O>, class: usize, keep: i64) {
    sampling::put_back(own, class);
    send_all_but(own, class, keep);
}

fn send_all_but<O: Os>(own: Own<'_, O>, class: usize, keep: i64) {
    // Blocks of any owner may be in the bin. Each was allocated before it was freed into the bin, so the newest view covers it.
    let view = own.renew_view();
    let mut chain = match own.bins().take_all_but(class, keep, &view) {
        Ok(Some(chain)) => chain,
        Ok(None) => return,
        Err(address) => return own.report(Misuse::link_written(block_bytes(class)), address),
    };
    let n = chain.n_left();
    // While each may have been the last allocated block of an OS page, they are given back one at a time.
    let purges = own.purge().is_on();
    while !chain.first().is_null() {
        if !purges && returns::give_back(own, &mut chain) {
            continue;
        }
        match spans::home_of(own.layout(), own.lookup(), chain.first().addr()) {
            Some(home) => {
                returns::turn_to(own, home.span.page());
                returns::give_back_first(own, &home, &mut chain);
            }
            None => {
                send_first(own, &view, &mut chain);
                send_buffered(own, &view, &mut chain);
            }
        }
    }
    returns::turn_to(own, PageIndex::NONE);
    own.bins().count_moved(class, i64::from(chain.n_left()) - i64::from(n));
}

/// Sends the first block of a chain, which has another owner.
fn send_first<O: Os>(own: Own<'_, O>, view: &View, chain: &mut FreeChain) {
    match chain.pop(view, own.lookup().tag()) {
        Some(Found::Other(block, generation)) => {
            profiling::forget_small(own, generation, block.address());
            route::send(own, block, generation);
        }
        Some(Found::Own(block)) => route::route(own, block),
        // The block was freed again after its span went to the page heap.
        Some(Found::Lost(address)) => {
            own.report(Misuse::DoubleFree { block_bytes: block_bytes(chain.class()) }, address);
        }
        Some(Found::Wrong(what, address)) => own.report(what, address),
        // Only inboxes have stretches.
        Some(Found::Stretch(_)) | None => {}
    }
}

/// Sends the first blocks of a chain as long as each has an owner that blocks are buffered for.
fn send_buffered<O: Os>(own: Own<'_, O>, view: &View, chain: &mut FreeChain) {
    while let Some((slot, block)) = chain.pop_if(view, |entry| own.remote().slot_and_class(entry)) {
        route::buffer_uncounted(own, slot, block);
    }
}

#[cfg(test)]
mod tests;
