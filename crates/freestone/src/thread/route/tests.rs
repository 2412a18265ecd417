#![allow(unsafe_code)]
use super::*;
use crate::size_class::class_of;
use crate::testing::World;
use crate::thread::drain::drain;
use freestone_os::fake::Fake;

const BYTES: usize = 30_000;

/// A block of `owner` that lies beyond the view of `other`. In tests a view reaches no further than it must.
fn beyond_the_view(other: Own<'_, Fake>, owner: Own<'_, Fake>) -> *mut u8 {
    let blocks = (0..).map(|_| owner.allocate(BYTES, 1).start);
    let mut beyond = blocks.filter(|block| other.bins().lookup().view().page_of(block.addr()).is_none());
    beyond.next().unwrap()
}

fn free_block(start: *mut u8) -> FreeBlock {
    // SAFETY: the block is the test's, of that class, and not used any more.
    unsafe { FreeBlock::new(start, class_of(BYTES)) }
}

/// The block passed through the buffer for an owner that exited, and comes back: its page lies beyond the sender's view.
#[test]
fn a_refused_block_from_beyond_the_senders_view_is_routed() {
    let world = World::new(4096);
    let (sender, owner) = (world.heap(), world.heap());
    let start = beyond_the_view(sender, owner);
    let generation = owner.generation();
    send(sender, free_block(start), generation);
    assert!(sender.bins().lookup().view().page_of(start.addr()).is_none(), "the sender's view is old");
    // SAFETY: the heap is not used afterwards.
    unsafe { world.threads.end(owner) };
    let left_out = world.shared.usage.left_out(class_of(BYTES));
    send_all(sender);
    assert_eq!(world.shared.usage.left_out(class_of(BYTES)), left_out - 1, "the block is back in its span");
    world.check().unwrap();
}

/// The sender, which had mapped more pages, exits; the block is in the owner's inbox, and its page lies beyond the owner's view.
#[test]
fn a_drained_block_from_beyond_the_owners_view_is_returned_to_its_span() {
    let world = World::new(4096);
    let (owner, other) = (world.heap(), world.heap());
    let start = beyond_the_view(owner, other);
    // As if the span had been the owner's when the block was handed over.
    let mut block = Some(free_block(start));
    other.remote().hand_one_over(owner.remote().mailbox(), block.take().unwrap()).unwrap();
    drain(owner);
    assert!(owner.bins().lookup().view().page_of(start.addr()).is_some(), "the drain brings the view up to date");
    send_all(owner);
    drain(other);
    assert_eq!(other.bins().first(class_of(BYTES)).cast(), start, "the block was passed on");
    world.check().unwrap();
}

#[test]
fn the_background_thread_is_woken_however_many_owners_the_blocks_have() {
    for n_owners in [1, 8, 15] {
        let world = World::new(4096);
        let (other, owners) = (world.heap(), Vec::from_iter((0..n_owners).map(|_| world.heap())));
        let before = world.shared.pages.wakes();
        for n in 0.. {
            let start = owners[n % n_owners].allocate(BYTES, 1).start;
            // SAFETY: the block is this test's.
            unsafe { other.free(start) };
            if other.heap().n_handovers() >= 2 * TELLING_HANDOVERS {
                break;
            }
        }
        assert!((2..=3).contains(&(world.shared.pages.wakes() - before)), "{n_owners} owners");
    }
}

#[test]
fn a_block_of_an_explicit_heap_is_handed_over_at_once() {
    let world = World::new(4096);
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    let start = explicit.enter().own().allocate(64, 1).start;
    // SAFETY: the block is this test's.
    unsafe { heap.free(start) };
    assert_eq!(heap.heap().n_handovers(), 1);
    assert!(!explicit.gated().heap().mailbox().inbox().take(heap.remote().key()).is_empty());
}

#[test]
fn a_block_of_an_abandoned_span_goes_to_the_central_list() {
    let world = World::new(4096);
    let (gone, heap) = (world.heap(), world.heap());
    let [first, second] = [0, 1].map(|_| gone.allocate(BYTES, 1).start);
    // SAFETY: the heap is not used afterwards.
    unsafe { world.threads.end(gone) };
    assert_eq!(world.shared.usage.left_out(class_of(BYTES)), 2);
    route(heap, free_block(first));
    assert_eq!(world.shared.usage.left_out(class_of(BYTES)), 1);
    route(heap, free_block(second));
    world.check().unwrap();
    assert_eq!(world.shared.pages.stats().small_pages, 0, "with its last block, the span went to the page heap");
}

#[test]
fn a_block_of_an_orphaned_heap_is_kept_and_handed_out_again() {
    let world = World::new(4096);
    let (gone, heap) = (world.heap(), world.heap());
    let start = gone.allocate(BYTES, 1).start;
    // SAFETY: as if in a forked child, whose one thread is the test's.
    unsafe { world.threads.orphan_others(Some(heap)) };
    route(heap, free_block(start));
    assert_eq!(heap.allocate(BYTES, 1).start, start);
}

#[test]
fn a_block_of_this_heap_goes_to_its_span_and_defers_no_work() {
    let world = World::new(4096);
    let heap = world.heap();
    let [kept, start] = [0, 1].map(|_| heap.allocate(BYTES, 1).start);
    route(heap, free_block(start));
    assert!(heap.purge().is_at(PageIndex::NONE), "no span is being visited");
    assert_eq!(heap.heap().n_handovers(), 0);
    world.check().unwrap();
    route(heap, free_block(kept));
    world.check().unwrap();
}

#[test]
fn a_block_that_is_routed_twice_is_reported_and_breaks_nothing() {
    let world = World::new(4096).ignoring_misuse();
    let heap = world.heap();
    let [_kept, start] = [0, 1].map(|_| heap.allocate(BYTES, 1).start);
    route(heap, free_block(start));
    route(heap, free_block(start));
    world.check().unwrap();
}

/// A slot is used for another owner while it has blocks of one that has ended.
#[test]
fn blocks_that_a_closed_inbox_refuses_when_their_slot_is_needed_are_routed() {
    let world = World::new(4096);
    let (sender, gone) = (world.heap(), world.heap());
    // Two of them fill the slot: one stays there.
    let blocks: std::vec::Vec<_> = (0..11).map(|_| gone.allocate(BYTES, 1).start).collect();
    let generation = gone.generation();
    blocks.into_iter().for_each(|block| send(sender, free_block(block), generation));
    // Before the owner ends, so that none has its record.
    let heaps: std::vec::Vec<_> = (0..64).map(|_| world.heap()).collect();
    world.end(gone);
    for heap in &heaps {
        send(sender, free_block(heap.allocate(BYTES, 1).start), heap.generation());
    }
    sender.bins().count_remote_frees(class_of(BYTES), 75);
    heaps.into_iter().for_each(|heap| world.end(heap));
    world.end(sender);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0, "a block was lost");
}
