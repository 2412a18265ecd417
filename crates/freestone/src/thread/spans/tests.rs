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
        assert_eq!(heap.spans().give_back_first(&home, &mut chain), Ok(()));
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
    assert!(class.take(&heap.shared().pages, 1, false, heap.bins().key()).is_none());
    assert!(class.use_fullest_partial(heap.layout()));
    let (batch, less_free) = class.take(&heap.shared().pages, 10, false, heap.bins().key()).unwrap();
    assert_eq!((batch.len(), less_free), (2, 2), "no more than the span has");
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

/// Blocks in a bin of the class, in this order, as they come out of it together.
fn chain(heap: Own<'_, Fake>, blocks: &[*mut u8]) -> FreeChain {
    for &block in blocks.iter().rev() {
        // SAFETY: the block is the test's, and not used any more; or it was freed before, which is the point.
        heap.bins().put(unsafe { FreeBlock::new(block, class_of(BYTES)) });
    }
    let chain = heap.bins().take_all_but(class_of(BYTES), 0, &heap.renew_view()).unwrap().unwrap();
    heap.bins().count_moved(class_of(BYTES), -i64::from(chain.n_left()));
    chain
}

/// Gives a chain back with the key of the heap's bins.
fn give_back_all<'a>(heap: Own<'a, Fake>, chain: &mut FreeChain) -> Returned<'a> {
    assert!(!chain.key().is_plain());
    heap.spans().give_back(heap.layout(), heap.lookup(), chain)
}

#[test]
fn blocks_behind_each_other_go_back_to_their_spans_up_to_the_first_that_is_anothers() {
    let world = World::new(4096);
    let (heap, other) = (world.heap(), world.heap());
    let spans = fill_spans(heap, 3);
    let theirs = other.allocate(BYTES, 1).start;
    let mut chain = chain(heap, &[spans[0][1], spans[0][0], spans[1][0], spans[0][7], theirs, spans[1][1]]);
    let returned = give_back_all(heap, &mut chain);
    assert_eq!((returned.n, chain.n_left()), (4, 2));
    assert!(matches!(returned.stop, Stop::Elsewhere));
    assert_eq!(chain.first().cast(), theirs);
    let again = give_back_all(heap, &mut chain);
    assert!(again.n == 0 && matches!(again.stop, Stop::Elsewhere) && chain.n_left() == 2, "nothing is done");
    assert_eq!(listed(heap).iter().filter(|listed| **listed == Listed::Partial).count(), 2);
    let counts = spans[..2].iter().map(|blocks| {
        let home = home_of(heap.layout(), heap.lookup(), blocks[0].addr()).unwrap();
        (home.span.n_free.get(), blocks::count_free(&home.span), home.span.first_word.get())
    });
    assert_eq!(counts.collect::<Vec<_>>(), [(3, 3, 0), (1, 1, 0)]);
}

#[test]
fn a_chain_stops_at_the_span_of_which_no_block_is_out_any_more() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 2);
    let mut all = spans[0].clone();
    all.push(spans[1][3]);
    let mut chain = chain(heap, &all);
    let returned = give_back_all(heap, &mut chain);
    assert_eq!((returned.n as usize, chain.n_left()), (spans[0].len(), 1));
    assert!(matches!(returned.stop, Stop::Emptied(home) if home.span.start() == spans[0][0]));
    assert_eq!(chain.first().cast(), spans[1][3]);
}

/// For each way in which a block may be refused: the blocks before it are back, and the chain goes on behind it.
#[test]
fn a_refused_block_is_returned_and_the_chain_continues_behind_it() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 1);
    let blocks = &spans[0];
    give_back(heap, &blocks[..1]);
    let inside = blocks[3].wrapping_add(16);
    for (at, (wrong, why)) in [(blocks[0], Refused::FreeAlready), (inside, Refused::NotABlock)].into_iter().enumerate()
    {
        let own = &blocks[5 + 2 * at..];
        let mut chain = chain(heap, &[own[0], wrong, own[1]]);
        let returned = give_back_all(heap, &mut chain);
        assert_eq!(returned.n, 1, "the one before it");
        assert!(matches!(returned.stop, Stop::Refused(_, block, what) if block.cast() == wrong && what == why));
        assert_eq!((chain.first().cast(), chain.n_left()), (own[1], 1));
        let first = give_back_all(heap, &mut chain);
        assert_eq!((first.n, chain.n_left()), (1, 0));
    }
}

#[test]
fn a_block_that_was_written_to_in_its_bin_is_refused() {
    let world = World::new(4096);
    let heap = world.heap();
    let spans = fill_spans(heap, 1);
    let blocks = &spans[0];
    let mut chain = chain(heap, &[blocks[2], blocks[4], blocks[6]]);
    // SAFETY: the block is in the chain, which is the test's; its second word is its mark.
    unsafe { blocks[4].cast::<u64>().wrapping_add(1).write(7) };
    let returned = give_back_all(heap, &mut chain);
    assert_eq!(returned.n, 1);
    assert!(matches!(returned.stop, Stop::Refused(_, block, Refused::Written) if block.cast() == blocks[4]));
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

#[test]
fn a_refused_address_is_reported_with_its_offset_in_the_block_that_it_is_inside_of() {
    use crate::misuse::{Misuse, seen};
    let world = World::new(4096).ignoring_misuse();
    let heap = world.heap();
    for size in [48, 80, 112, 320, 1000, 7000] {
        let block = heap.allocate(size, 1).start;
        let (class, home) = (class_of(size), home_of(heap.layout(), heap.lookup(), block.addr()).unwrap());
        for (index, offset) in [(0, 16), (3, 32), (5, 16)] {
            let address = home.span.start().addr() + index * block_bytes(class) + offset;
            let page = home.span.page();
            crate::thread::returns::report_refused(heap, address, class, page, Refused::NotABlock);
            let what = Misuse::Interior { block_bytes: block_bytes(class), offset };
            assert_eq!(seen::take(), [(what, address)], "{size}");
        }
        crate::testing::free(heap, block);
    }
}
