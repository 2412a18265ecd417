#![allow(unsafe_code)]
use super::*;
use crate::size_class::{block_bytes, class_of};
use crate::testing::World;
use crate::thread::free_block::FreeBlock;
use crate::thread::heap::own::Own;
use freestone_os::fake::Fake;
use std::vec::Vec;

/// Blocks of this many bytes make spans of one page that hold 16 of them.
const BYTES: usize = 4000;

/// Fills `n` spans of the class, no block of which is in the bin.
fn fill_spans(heap: Own<'_, Fake>, n: usize) -> Vec<Vec<*mut u8>> {
    let per_span =
        OwnedSpans::new_span_pages(heap.shared(), class_of(BYTES)).to_bytes().0 / block_bytes(class_of(BYTES));
    let blocks: Vec<_> = (0..n * per_span).map(|_| heap.allocate(BYTES, 1).start).collect();
    blocks.chunks(per_span).map(Vec::from).collect()
}

/// Gives blocks back to their span, one by one.
fn give_back(heap: Own<'_, Fake>, blocks: &[*mut u8]) {
    for &block in blocks {
        let home = home_of(heap.layout(), heap.bins().lookup(), block.addr()).unwrap();
        // SAFETY: the block is the test's, and not used any more.
        let mut chain = FreeChain::of(unsafe { FreeBlock::new(block, class_of(BYTES)) });
        let returned = heap.spans().give_back(&home, &mut chain, 1);
        assert_eq!((returned.n, returned.refused.is_none()), (1, true));
        assert!(chain.first().is_null());
    }
}

fn listed(heap: Own<'_, Fake>) -> Vec<Listed> {
    let mut all = Vec::new();
    heap.spans().of(class_of(BYTES)).for_each(heap.layout(), |_, listed| all.push(listed));
    all
}

#[test]
fn a_span_is_full_without_a_free_block_and_partial_after_the_first_return() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 3);
    assert_eq!(listed(heap).iter().filter(|listed| **listed == Listed::Full).count(), 2);
    give_back(heap, &spans[0][..1]);
    give_back(heap, &spans[0][1..3]);
    assert_eq!(listed(heap), [Listed::No, Listed::Partial, Listed::Full]);
}

#[test]
fn blocks_come_from_the_fullest_partial_span() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 4);
    give_back(heap, &spans[0][..9]);
    give_back(heap, &spans[1][..2]);
    give_back(heap, &spans[2][..5]);
    // The current span, the fourth, has no block left.
    let class = heap.spans().of(class_of(BYTES));
    assert!(class.take(&heap.shared().pages, 1, heap.bins().key()).is_none());
    assert!(class.use_fullest_partial(heap.layout()));
    let (batch, n_reused) = class.take(&heap.shared().pages, 10, heap.bins().key()).unwrap();
    assert_eq!((batch.len(), n_reused), (2, 2), "no more than the span has");
    let first = batch.link(ptr::null_mut(), heap.bins().key()).cast();
    assert!(spans[1][..2].contains(&first), "the second span had the most blocks out");
}

#[test]
fn a_heap_without_partial_spans_has_no_fullest_one() {
    let world = World::new(4096);
    let heap = world.heap();
    fill_spans(heap, 2);
    assert!(!heap.spans().of(class_of(BYTES)).use_fullest_partial(heap.layout()));
    assert!(!heap.spans().of(class_of(64)).use_fullest_partial(heap.layout()));
}

#[test]
fn blocks_out_of_spans_are_counted() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 1);
    let class = heap.spans().of(class_of(BYTES));
    let before = class.n_out();
    assert_eq!(before, spans[0].len() as i64);
    give_back(heap, &spans[0][..4]);
    assert_eq!(class.n_out(), before - 4);
}

#[test]
fn blocks_behind_each_other_go_back_together_up_to_the_first_of_another_span() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 2);
    let class = class_of(BYTES);
    for &block in [spans[1][0], spans[0][0], spans[0][1]].iter() {
        // SAFETY: the block is the test's, and not used any more.
        heap.bins().put(unsafe { FreeBlock::new(block, class) });
    }
    let mut chain = heap.bins().take_all_but(class, 0, &heap.renew_view()).unwrap().unwrap();
    let home = home_of(heap.layout(), heap.bins().lookup(), spans[0][0].addr()).unwrap();
    let returned = heap.spans().give_back(&home, &mut chain, 3);
    assert_eq!((returned.n, returned.is_empty, chain.n_left()), (2, false, 1));
    assert_eq!(chain.first().cast(), spans[1][0]);
}

#[test]
fn a_refused_block_is_returned_and_the_chain_continues_behind_it() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 1);
    let class = class_of(BYTES);
    give_back(heap, &spans[0][..1]);
    for &block in [spans[0][2], spans[0][0], spans[0][1]].iter() {
        // SAFETY: the block is the test's; one was freed before, which is the point.
        heap.bins().put(unsafe { FreeBlock::new(block, class) });
    }
    let mut chain = heap.bins().take_all_but(class, 0, &heap.renew_view()).unwrap().unwrap();
    let home = home_of(heap.layout(), heap.bins().lookup(), spans[0][0].addr()).unwrap();
    let returned = heap.spans().give_back(&home, &mut chain, 3);
    assert_eq!(returned.n, 1, "the one before it");
    assert_eq!(returned.refused, Some((spans[0][0].cast(), Refused::FreeAlready)));
    assert_eq!((chain.first().cast(), chain.n_left()), (spans[0][2], 1));
}

#[test]
fn no_span_is_found_for_blocks_of_others_and_addresses_outside() {
    let world = World::new(4096);
    let (heap, other) = (world.heap(), world.heap());
    let block = other.allocate(BYTES, 1).start;
    heap.renew_view();
    assert!(home_of(heap.layout(), heap.bins().lookup(), block.addr()).is_none());
    assert!(home_of(heap.layout(), heap.bins().lookup(), 8).is_none());
    let page = world.shared.pages.view().page_of(block.addr()).unwrap();
    assert!(home_at(&world.shared, heap.heap().mailbox(), page).is_none());
    assert!(home_at(&world.shared, other.heap().mailbox(), page).is_some());
}

#[test]
fn pages_of_spans_are_counted() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 2);
    let pages = heap.spans().n_pages();
    assert_eq!(pages, world.small_span_pages());
    // SAFETY: the blocks are this test's, and not used any more.
    unsafe { spans.iter().flatten().for_each(|&block| heap.free(block)) };
    crate::thread::upkeep::flush_all(heap);
    assert_eq!((heap.spans().n_pages(), world.small_span_pages()), (0, 0));
    world.check().unwrap();
}
