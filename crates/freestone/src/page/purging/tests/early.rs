//! What goes back at once when a large block is freed.

use crate::config::key;
use crate::page::page_heap::OwnedRun;
use crate::page::tests::{MIB, dirty_bytes, take_run, take_span};
use crate::span::Kind;
use crate::testing::{World, free};
use freestone_base::units::{PAGE_BYTES, PAGE_BYTES_LOG2};
use std::vec::Vec;

fn dirty_pages(world: &World) -> u64 {
    dirty_bytes(world) >> PAGE_BYTES_LOG2
}

#[test]
fn what_a_large_block_leaves_dirty_beyond_a_mebibyte_goes_back_at_once_the_oldest_first() {
    let world = World::hardened(4096, "off");
    let [old, _wall, young] = [10, 1, 12].map(|n| take_run(&world, n));
    let first = old.page();
    world.shared.pages.free(old);
    assert_eq!((dirty_pages(&world), world.os().purged_bytes()), (10, 0), "it is at most 1 MiB");
    world.shared.pages.free(young);
    assert_eq!((dirty_pages(&world), world.os().purged_bytes() as usize), (16, 6 * PAGE_BYTES));
    let is_clean = |page| world.shared.pages.inspect(|state| state.runs.record(page).kind.get() == Kind::Clean);
    assert!(is_clean(first), "the older run goes first");
    world.check().unwrap();
}

#[test]
fn one_page_in_32_of_what_is_in_use_may_stay() {
    let world = World::hardened(4096, "off");
    let _in_use = take_run(&world, 1280);
    let [dirty, _wall, more] = [40, 1, 10].map(|n| take_run(&world, n));
    world.shared.pages.free(dirty);
    assert_eq!((dirty_pages(&world), world.os().purged_bytes()), (40, 0));
    world.shared.pages.free(more);
    assert_eq!(dirty_pages(&world), 40);
}

/// Spans that are emptied are mostly taken again at once. There are more than may wait for the lock.
#[test]
fn spans_alone_have_nothing_purged_at_once() {
    let world = World::hardened(4096, "off");
    let pages = &world.shared.pages;
    let spans: Vec<OwnedRun> = (0..240).map(|_| take_span(&world)).collect();
    let [block, _wall] = [1, 1].map(|n| take_run(&world, n));
    spans.into_iter().for_each(|span| pages.free(span));
    assert_eq!(world.shared.pages.purged_bytes(), 0);
    pages.free(block);
    assert_eq!(
        (dirty_pages(&world), world.shared.pages.purged_bytes() as usize),
        (16, 225 * PAGE_BYTES),
        "a large block has"
    );
    world.check().unwrap();
}

/// The lists of freed runs hold at most as much as may be dirty, and what finds no room there does not wait for a lock.
#[test]
fn frees_through_lists_keep_little_while_there_is_budget_and_up_to_the_dirty_bound_then() {
    let world = World::hardened(4096, "off");
    let heap = world.heap();
    let blocks: Vec<*mut u8> = (0..160).map(|_| heap.allocate(4 * PAGE_BYTES, 1).start).collect();
    let pages = &world.shared.pages;
    let kept = || dirty_pages(&world) + u64::from((pages.freed.pages() + pages.emptied.pages()).0);
    let mut before = 0;
    for (n, &block) in (1_u64..).zip(&blocks) {
        free(heap, block);
        let purged = world.shared.pages.purged_bytes() >> PAGE_BYTES_LOG2;
        assert_eq!(kept() + purged, 4 * n, "block {n}");
        // What is listed becomes dirty, and is not kept besides.
        assert!(
            purged == 256 || kept() <= if purged > before { 20 } else { 40 },
            "block {n}: {} pages are kept",
            kept()
        );
        before = purged;
    }
    assert_eq!(world.shared.pages.purged_bytes() as usize, 16 * MIB, "the budget");
    assert_eq!(kept(), 4 * 160 - 256);
    world.check().unwrap();
}

#[test]
fn without_a_decay_time_nothing_goes_back_at_once() {
    let world = World::hardened(4096, "off");
    world.set(key::DECAY_MS, "4294967295");
    let [dirty, _wall] = [200, 1].map(|n| take_run(&world, n));
    world.shared.pages.free(dirty);
    assert_eq!((dirty_pages(&world), world.os().purged_bytes()), (200, 0));
}

/// A purge would split them.
#[test]
fn huge_pages_do_not_go_back_at_once() {
    let world = World::hardened(4096, "off");
    world.give_huge_pages(2 << 20);
    let heap = world.heap();
    let block = heap.allocate(10 * MIB, 1).start;
    assert_eq!(world.os().huge_bytes(), 8 * MIB);
    free(heap, block);
    assert_eq!((dirty_bytes(&world) as usize, world.os().purged_bytes()), (10 * MIB, 0));
}
