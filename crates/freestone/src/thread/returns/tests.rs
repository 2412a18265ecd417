use super::*;
use crate::config::key;
use crate::size_class::class_of;
use crate::testing::{World, fill, free, is_filled, span_of};
use crate::thread::flush::flush;
use freestone_base::units::PAGE_BYTES;
use std::vec::Vec;

/// Whatever is at a page that waits by the time that its turn comes: nothing but OS pages without a block goes back.
#[test]
fn a_page_that_waits_and_is_in_another_span_by_then_loses_nothing() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "0");
    let (heap, other) = (world.heap(), world.heap());
    let live = |heap: Own<'_, _>, size: usize| {
        let block: *mut u8 = heap.allocate(size, 1).start;
        fill(block, 0x5A, size);
        (block, size)
    };
    let long = class_of(32 << 10);
    let blocks = [
        // Another owner's; a large block's second page and its first; a page inside a span, and beyond what was ever in use.
        live(other, 700),
        live(heap, 3 * PAGE_BYTES),
        live(heap, block_bytes(long)),
    ];
    let n = heap.layout().n_pages as u32;
    let first = blocks.map(|(block, _)| world.shared.pages.view().page_of(block.addr()).unwrap().0);
    for page in first.iter().flat_map(|&page| page..page + 2).chain([n - 1]) {
        let _ = heap.purge().wait(PageIndex(page), u64::MAX);
    }
    let before = world.os().purged_bytes();
    release_waiting(heap);
    assert!(blocks.iter().all(|&(block, size)| is_filled(block, 0x5A, size)), "a block's memory was given back");
    assert_eq!(world.os().purged_bytes(), before);
    blocks.into_iter().zip([other, heap, heap]).for_each(|((block, _), heap)| free(heap, block));
    world.check().unwrap();
}

/// It needs them soon: blocks were taken out of it again while it waited.
#[test]
fn a_span_that_is_not_mostly_free_keeps_its_os_pages() {
    let world = World::new(4096);
    let heap = world.heap();
    let mut blocks: Vec<*mut u8> = (0..64).map(|_| heap.allocate(1024, 1).start).collect();
    let page = span_of(&world, blocks[0]).page();
    blocks.drain(..24).for_each(|block| free(heap, block));
    flush(heap, class_of(1024), 0);
    let _ = heap.purge().wait(page, u64::MAX);
    release_waiting(heap);
    assert_eq!(world.os().purged_bytes(), 0);
    blocks.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn spans_that_wait_are_released_by_the_tick_and_when_caches_are_emptied() {
    for by_tick in [false, true] {
        let world = World::new(4096);
        let heap = world.heap();
        let mut blocks: Vec<*mut u8> = (0..64).map(|_| heap.allocate(1024, 1).start).collect();
        let page = span_of(&world, blocks[0]).page();
        blocks.drain(8..).for_each(|block| free(heap, block));
        flush(heap, class_of(1024), 0);
        let _ = heap.purge().wait(page, u64::MAX);
        let before = world.os().purged_bytes();
        if by_tick {
            world.os().advance_ms(10_000);
            crate::thread::upkeep::tick(heap, heap.now_ms());
        } else {
            crate::thread::upkeep::flush_all(heap);
        }
        assert_eq!(world.os().purged_bytes(), before + 14 * 4096, "by the tick: {by_tick}");
        blocks.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}
