use super::*;
use crate::config::key;
use crate::size_class::class_of;
use crate::testing::{World, fill, free, is_filled, span_of};
use crate::thread::flush::flush;
use crate::thread::life::succession::Which;
use crate::thread::upkeep::flush_all;
use freestone_base::units::PAGE_BYTES;
use freestone_testkit::ops::SplitMix;
use std::collections::BTreeSet;
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

/// The OS pages that some blocks lie in.
fn os_pages_of(world: &World, blocks: &[*mut u8]) -> BTreeSet<usize> {
    let pages = |&block: &*mut u8| {
        let end = block.addr() + block_bytes(span_of(world, block).class.get() as usize);
        block.addr() / 4096..end.div_ceil(4096)
    };
    blocks.iter().flat_map(pages).collect()
}

/// Of spans that are more than half full, too, and of each kind of owner.
#[test]
fn when_all_is_purged_the_os_pages_in_which_a_block_is_live_stay_and_no_others() {
    for level in ["off", "default", "checks"] {
        for one_of in [2, 4, 32] {
            let world = World::hardened(4096, level);
            let (heap, ended, explicit) = (world.heap(), world.heap(), world.explicit_heap());
            let mut random = SplitMix(one_of as u64);
            let (mut live, mut go) = (Vec::new(), Vec::new());
            for at in 0..9000 {
                let size = [64, 200, 1000, 3000, 9000][random.below(5)];
                let block = match at % 3 {
                    0 => heap.allocate(size, 1).start,
                    1 => ended.allocate(size, 1).start,
                    _ => explicit.enter().own().allocate(size, 1).start,
                };
                fill(block, 0x5A, size);
                if random.below(one_of) == 0 { live.push((block, size)) } else { go.push(block) }
            }
            world.end(ended);
            go.into_iter().for_each(|block| free(heap, block));
            flush_all(heap);
            world.threads.purge(&world.shared, Which::Rested);
            let gone = || (world.os().purged_bytes() as i64, world.shared.pages.uncarved.bytes());
            let before = gone();
            release_all(heap);
            world.threads.purge(&world.shared, Which::All);
            let after = gone();
            assert_eq!(after.0 - before.0, after.1 - before.1, "nothing but what lies in spans is left to go");
            let blocks: Vec<_> = live.iter().map(|&(block, _)| block).collect();
            let resident = world.small_span_pages() as i64 * PAGE_BYTES as i64 - world.shared.pages.uncarved.bytes();
            // Less if the last block that was carved from a span ends in an OS page that counts as not carved.
            let most = os_pages_of(&world, &blocks).len() * 4096;
            assert!(resident as usize <= most, "{level}, one of {one_of}: {resident} bytes stay, not {most}");
            assert!(live.iter().all(|&(block, size)| is_filled(block, 0x5A, size)), "a block's memory was given back");
            world.check().unwrap();
            // What went back is used again.
            blocks.into_iter().for_each(|block| free(heap, block));
            (0..3000).for_each(|_| fill(heap.allocate(1000, 1).start, 0x33, 1000));
            world.check().unwrap();
        }
    }
}
