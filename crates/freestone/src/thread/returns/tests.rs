use super::*;
use crate::config::key;
use crate::size_class::class_of;
use crate::testing::{World, fill, free, is_filled, span_of};
use crate::thread::flush::flush;
use crate::thread::life::succession::Which;
use crate::thread::upkeep::flush_all;
use freestone_base::units::PAGE_BYTES;
use freestone_os::fake::Fake;
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

/// A heap in which one of 16 blocks of 1 KiB is live, and the live ones.
fn sparse(heap: Own<'_, Fake>, n: usize) -> Vec<*mut u8> {
    let blocks: Vec<*mut u8> = (0..n).map(|_| heap.allocate(1024, 1).start).collect();
    blocks.iter().enumerate().filter(|(at, _)| at % 16 != 0).for_each(|(_, &block)| free(heap, block));
    flush_all(heap);
    blocks.into_iter().step_by(16).collect()
}

/// The next request of a program that asks for it after each would fault the OS pages in again.
#[test]
fn all_is_purged_again_only_after_a_decay_time_or_if_much_has_become_free() {
    let world = World::new(4096);
    let heap = world.heap();
    world.os().advance_ms(5000);
    let purged = || world.purged_by(|| release_all(heap));
    // Free blocks beside each of which one is live: 2 MiB that cannot go back.
    let every: Vec<*mut u8> = (0..4096).map(|_| heap.allocate(1024, 1).start).collect();
    every.iter().skip(1).step_by(2).for_each(|&block| free(heap, block));
    let mut live: Vec<_> = every.into_iter().step_by(2).collect();
    flush_all(heap);
    live.extend(sparse(heap, 6144));
    assert!(purged() > 600 << 10);
    // What was given back is no longer free, for other threads either.
    assert!(world.shared.usage.free_in_spans() < 4 << 20);
    live.extend(sparse(heap, 512));
    assert_eq!(purged(), 0, "little has become free");
    live.extend(sparse(heap, 2048));
    assert!(purged() > 1 << 20, "much has");
    live.extend(sparse(heap, 512));
    world.os().advance_ms(1500);
    assert!(purged() > 200 << 10, "it is long ago");
    live.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

/// Each span without an owner is looked through once, and again when a block was freed there; all of them, where all were asked to be.
#[test]
fn spans_without_an_owner_are_not_looked_through_again_in_vain() {
    let world = World::new(4096);
    let (ended, heap) = (world.heap(), world.heap());
    let mut live = sparse(ended, 4096);
    world.end(ended);
    let (central, pages, usage) = (&world.shared.central, &world.shared.pages, &world.shared.usage);
    let purged = |bytes| world.purged_by(|| central.release_os_pages(pages, usage, bytes));
    let part = purged(Some(1 << 20));
    assert!((900 << 10..=(1 << 20) + PAGE_BYTES).contains(&part), "{part}");
    assert!(purged(Some(i64::MAX)) > 1 << 20, "the rest");
    // To be looked through, a span is made to have memory where nothing is carved.
    live.iter().for_each(|&block| span_of(&world, block).fresh_has_memory.set(true));
    assert_eq!((purged(Some(i64::MAX)), purged(Some(1))), (0, 0), "nothing was freed");
    free(heap, live.pop().unwrap());
    flush_all(heap);
    let of_one = purged(Some(i64::MAX));
    assert!((1..=PAGE_BYTES).contains(&of_one), "a block was, in one span: {of_one}");
    live.iter().for_each(|&block| span_of(&world, block).fresh_has_memory.set(true));
    assert!(purged(None) > 1 << 20, "not all were asked to");
    live.iter().for_each(|&block| span_of(&world, block).fresh_has_memory.set(true));
    assert_eq!(purged(None), 0, "nothing was freed");
    free(heap, live.pop().unwrap());
    flush_all(heap);
    assert!(purged(None) > 1 << 20);
    live.into_iter().for_each(|block| free(heap, block));
}
