//! Sends a block of another owner: into the buffer for its owner, or at once to the span's current owner.
//!
//! A free block that is not back in its span keeps the span in use.

use crate::misuse::Misuse;
use crate::size_class::block_bytes;
use crate::span::free_node::Marked;
use crate::span::{Generation, PageIndex};
use crate::thread::free_block::{Found, FreeBlock, FreeChain, Stretch};
use crate::thread::heap::own::Own;
use crate::thread::in_transit::InTransit;
use crate::thread::remote_frees::Slot;
use crate::thread::send::{self, Sent};
use crate::thread::span_owner::owner_of;
use crate::thread::watched::homecoming::fill_head;
use crate::thread::{returns, spans};
use freestone_os::Os;

/// After as many handovers of a thread, it publishes what is live, and the background thread looks whether the owners take the blocks (`idle`): about 4000 blocks,
/// of 8 MiB at most.
const TELLING_HANDOVERS: u64 = 128;

/// The same, where each block is handed over by itself: of 32 MiB at most.
const TELLING_BLOCKS: u64 = 1024;

/// Sends a block of another owner, or of an abandoned span. It counts as freed already, or is in transit. `generation` is the one in the entry
/// of its page.
pub(crate) fn send<O: Os>(own: Own<'_, O>, block: FreeBlock, generation: Generation) {
    match own.remote().slot_of(generation) {
        Some(slot) => buffer(own, slot, block),
        None => send_first(own, block, generation),
    }
}

/// Buffers a block for its owner in a slot that has blocks of that owner.
#[inline(never)]
fn buffer<O: Os>(own: Own<'_, O>, slot: &Slot, block: FreeBlock) {
    let class = block.class();
    if own.remote().buffer(slot, block) {
        hand_over(own, slot, class);
    }
}

/// As [`buffer`], of a block whose bytes are not counted.
#[inline(always)]
pub(crate) fn buffer_uncounted<O: Os>(own: Own<'_, O>, slot: &Slot, block: FreeBlock) {
    let class = block.class();
    if own.remote().buffer_uncounted(slot, block) {
        hand_over(own, slot, class);
    }
}

/// Hands over a slot that is full, with a block of `class` as its last. Publishes what is live of that class, if it is much less.
#[cold]
#[inline(never)]
fn hand_over<O: Os>(own: Own<'_, O>, slot: &Slot, class: usize) {
    own.publish_if_much(class, own.bins().live(class));
    let before = own.heap().n_handovers();
    route_all(own, own.remote().hand_over(slot, reports_wrong(own)));
    tell_now_and_then(own, before, TELLING_HANDOVERS);
}

/// If another `every` handovers are full since there were `before`, publishes what the thread has freed, and wakes the background thread.
#[inline(always)]
fn tell_now_and_then<O: Os>(own: Own<'_, O>, before: u64, every: u64) {
    if own.heap().n_handovers() / every != before / every {
        own.publish_all_live();
        own.shared().pages.wake_for_work();
    }
}

/// Sends a block of an owner that no block is buffered for.
#[cold]
fn send_first<O: Os>(own: Own<'_, O>, block: FreeBlock, generation: Generation) {
    let before = own.heap().n_handovers();
    let is_buffered = !generation.is_explicit() && generation != Generation::ABANDONED;
    let owner = if is_buffered { owner_of(own.shared(), &block).1 } else { None };
    match owner {
        Some(owner) if !owner.is(own.heap().mailbox()) => {
            let (slot, refused) = own.remote().begin_slot((generation, owner), &block, reports_wrong(own));
            buffer(own, slot, block);
            route_all(own, refused);
        }
        _ => route(own, block),
    }
    tell_now_and_then(own, before, if is_buffered { TELLING_HANDOVERS } else { TELLING_BLOCKS });
}

/// [`report_wrong`] for this heap: of one type, so that what calls it is compiled once.
#[inline(always)]
fn reports_wrong<O: Os>(own: Own<'_, O>) -> impl Fn(Marked, usize) + Copy {
    move |marked, address| report_wrong(own, marked, address)
}

/// Reports a block that was freed again, or written to, while it was buffered: `marked` is what its mark says.
#[cold]
fn report_wrong<O: Os>(own: Own<'_, O>, marked: Marked, address: usize) {
    let block_bytes = own.renew_view().small_class(address).map_or(0, block_bytes);
    let what = match marked {
        Marked::No | Marked::InTransit => Misuse::link_written(block_bytes),
        _ => Misuse::DoubleFree { block_bytes },
    };
    own.report(what, address);
}

/// Hands everything buffered over.
pub(crate) fn send_all<O: Os>(own: Own<'_, O>) {
    let before = own.heap().n_handovers();
    own.remote().hand_all_over(reports_wrong(own), |refused| route_all(own, refused));
    tell_now_and_then(own, before, TELLING_HANDOVERS);
}

/// Sends each block to its span's current owner.
pub(crate) fn route_all<O: Os>(own: Own<'_, O>, mut blocks: InTransit) {
    let tag = own.lookup().tag();
    while !blocks.is_empty() {
        // Another thread may have allocated the block from a page that this heap's view does not cover yet.
        let view = own.renew_view();
        match blocks.pop(&view, tag) {
            Some(Found::Own(block) | Found::Other(block, _)) => {
                let is_suspect = block.is_suspect();
                route_one(own, block, is_suspect);
            }
            Some(Found::Stretch(stretch)) => route_stretch(own, stretch),
            Some(Found::Wrong(what, address)) => own.report(what, address),
            Some(Found::Lost(_)) | None => {}
        }
    }
}

/// Sends each block of a stretch to its span's current owner.
pub(crate) fn route_stretch<O: Os>(own: Own<'_, O>, stretch: Stretch) {
    for block in stretch.into_blocks() {
        route(own, block);
    }
}

/// Sends one block to its span's current owner.
pub(crate) fn route<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    route_one(own, block, false);
}

/// Sends a block that may have been free before to where that is found out: an abandoned span, or its owner.
pub(crate) fn route_suspect<O: Os>(own: Own<'_, O>, block: FreeBlock) {
    route_one(own, block, true);
}

fn route_one<O: Os>(own: Own<'_, O>, block: FreeBlock, is_suspect: bool) {
    let (class, address) = (block.class(), block.address());
    let home = Some(own.heap().mailbox());
    match send::send(own.shared(), block, is_suspect, home) {
        Sent::HandedOver => own.remote().count_handover(),
        Sent::Done => {}
        Sent::Refused(page, why) => returns::report_refused(own, address, class, page, why),
        Sent::Home(page, block) => route_home(own, page, block),
    }
}

/// Gives a block back to the span of this heap that starts at `page`.
fn route_home<O: Os>(own: Own<'_, O>, page: PageIndex, block: FreeBlock) {
    let Some(home) = spans::home_at(own.shared(), own.heap().mailbox(), page) else { return };
    fill_head(own.shared(), &block);
    returns::turn_to(own, page);
    returns::give_back_first(own, &home, &mut FreeChain::of(block));
    // This is no flush: by the next one the span may have another owner.
    returns::turn_to(own, PageIndex::NONE);
}

#[cfg(test)]
mod tests;
