use super::{bring_batch, refill};
use crate::config::{Settings, key};
use crate::size_class::{block_bytes, class_of};
use crate::testing::{World, fill, free};
use crate::thread::heap::own::Own;
use crate::thread::{flush, upkeep};
use freestone_base::units::PAGE_BYTES;
use freestone_os::Os;
use freestone_os::fake::Fake;
use std::collections::BTreeSet;
use std::vec::Vec;

mod many_threads;

/// The class's span is used up, so the batch comes from a new one, and with it the tick, which drains the inbox into the same bin. (The
/// inbox was empty when the refill drained it: another thread filled it a moment later.)
#[test]
fn blocks_that_the_tick_drains_into_a_bin_stay_there_when_its_batch_arrives() {
    const BLOCK: usize = 64;
    let world = World::new(4096);
    let (owner, sender) = (world.heap(), world.heap());
    let class = class_of(BLOCK);
    let mut blocks: Vec<_> = (0..PAGE_BYTES / BLOCK).map(|_| owner.allocate(BLOCK, 1).start).collect();
    assert!(owner.bins().first(class).is_null(), "the span is used up");
    let sent = blocks.split_off(blocks.len() - 32);
    sent.iter().for_each(|&block| free(sender, block));
    free(sender, sender.allocate(1 << 20, 1).start);
    world.os().advance_ms(10_000);
    bring_batch(owner, class);
    world.check().unwrap();
    let in_bin: BTreeSet<_> =
        core::iter::from_fn(|| Some(owner.bins().pop(class)).filter(|block| !block.is_null())).collect();
    assert!(sent.iter().all(|block| in_bin.contains(block)), "blocks were lost");
    in_bin.into_iter().chain(blocks).for_each(|block| free(owner, block));
    upkeep::flush_all(owner);
    world.check().unwrap();
}

/// The bin stands for all that a tick does, and that needs the clock.
#[test]
fn a_new_span_brings_the_tick_only_where_memory_has_become_dirty() {
    let world = World::new(4096);
    let heap = world.heap();
    let idle = class_of(64);
    free(heap, heap.allocate(64, 1).start);
    // The first question whether a bin is idle only notes what was allocated so far.
    heap.bins().is_idle_since_last_asked(idle);
    world.os().advance_ms(10_000);
    let _first = heap.allocate(1000, 1);
    assert!(!heap.bins().is_empty(idle), "nothing was dirty");
    free(heap, heap.allocate(1 << 20, 1).start);
    world.os().advance_ms(10_000);
    let _second = heap.allocate(2000, 1);
    assert!(heap.bins().is_empty(idle), "memory is dirty");
    world.check().unwrap();
}

/// Blocks of one class, all freed again: more than a bin holds at first.
fn burst(heap: Own<'_, Fake>, size: usize, n: usize) {
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(size, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
}

#[test]
fn the_refill_of_a_bin_raises_its_capacity_by_what_was_flushed() {
    let world = World::new(4096);
    let heap = world.heap();
    let class = class_of(64);
    let first = flush::own_capacity(heap, class);
    burst(heap, 64, 5 * first as usize);
    assert!(heap.bins().flushed(class) > 0 && flush::own_capacity(heap, class) == first);
    let (flushed, _block) = (heap.bins().flushed(class), heap.allocate(64, 1));
    assert_eq!(flush::own_capacity(heap, class), first + flushed);
    assert_eq!(heap.bins().flushed(class), 0, "it counts anew");
    assert_eq!(heap.bins().borrowed(class), 0, "there are few threads");
}

#[test]
fn the_bins_of_a_heap_grow_together_to_a_number_of_blocks_and_begin_anew_when_they_are_idle() {
    let world = World::hardened(4096, "off");
    let (heap, sizes) = (world.heap(), (1..=16).map(|at| 16 * at));
    let capacity_of = |size| flush::own_capacity(heap, class_of(size));
    for _ in 0..2 {
        sizes.clone().flat_map(|size| [size; 2]).for_each(|size| burst(heap, size, 3000));
        assert!(capacity_of(16) > 3000, "the first has grown to what was freed");
        let together = heap.bins().capacities();
        assert_eq!(together, sizes.clone().map(capacity_of).sum());
        assert!((16_384..16_384 + 16 * 512).contains(&together), "{together}: the last have what bins start with");
        for _ in 0..2 {
            world.os().advance_ms(10_000);
            upkeep::tick(heap, world.os().now_ms() as u32);
        }
        assert_eq!(heap.bins().capacities(), 0, "all are idle");
        assert!(sizes.clone().all(|size| heap.bins().room(class_of(size)) == 0));
        world.check().unwrap();
    }
}

/// The bytes that bound a bin of long blocks do not bound all bins.
#[test]
fn where_bins_may_be_larger_those_of_a_heap_grow_together_to_more_blocks() {
    let world = World::hardened(4096, "off");
    let heap = world.heap();
    world.set(key::BIN_MAX, "16384");
    [16, 16, 32, 32].into_iter().for_each(|size| burst(heap, size, 16_000));
    let before = (heap.bins().capacities(), flush::own_capacity(heap, class_of(1024)));
    assert!(before.0 > 20_000);
    (0..2).for_each(|_| burst(heap, 1024, 600));
    assert!(flush::own_capacity(heap, class_of(1024)) > before.1);
}

#[test]
fn a_bin_whose_share_has_room_for_what_was_flushed_borrows_none() {
    let world = World::new(4096);
    let heap = world.heap();
    world.shared.usage.set_n_heaps(17, 0);
    let first = flush::bin_capacity(heap, class_of(64));
    burst(heap, 64, 2 * first as usize);
    let _block = heap.allocate(64, 1);
    assert!(flush::bin_capacity(heap, class_of(64)) > first);
    assert_eq!(heap.bins().borrowed(class_of(64)), 0);
}

#[test]
fn refills_from_spans_cancel_the_end_of_a_burst() {
    let world = World::new(4096);
    let heap = world.heap();
    burst(heap, 64, 3000);
    assert!(heap.burst().is_on_watch(), "the last block of the burst was freed");
    let _blocks: Vec<_> = (0..3000).map(|_| heap.allocate(64, 1)).collect();
    assert!(!heap.burst().is_on_watch());
}

#[test]
fn blocks_come_from_the_inbox_before_any_span() {
    let world = World::new(4096);
    let (owner, other) = (world.heap(), world.heap());
    let class = class_of(64);
    let block = owner.allocate(64, 1).start;
    while !owner.bins().is_empty(class) {
        let _ = owner.bins().pop(class);
    }
    free(other, block);
    crate::thread::route::send_all(other);
    let n_out = owner.spans().of(class).n_out();
    assert_eq!(refill(owner, class), (block, false));
    assert_eq!(owner.spans().of(class).n_out(), n_out, "no span was used");
}

#[test]
fn an_abandoned_span_is_adopted_before_a_new_one_is_made_but_not_by_an_explicit_heap() {
    let world = World::new(4096);
    let (gone, heir, explicit) = (world.heap(), world.heap(), world.explicit_heap());
    let _kept = gone.allocate(64, 1);
    world.end(gone);
    let pages = world.small_span_pages();
    let _block = explicit.enter().own().allocate(64, 1);
    assert!(world.small_span_pages() > pages, "the explicit heap has a span of its own");
    let pages = world.small_span_pages();
    let _block = heir.allocate(64, 1);
    assert_eq!(world.small_span_pages(), pages, "the other heap has adopted one");
    world.check().unwrap();
}

#[test]
fn when_memory_runs_out_a_refill_returns_null_and_the_bins_are_unchanged() {
    let world = World::new(4096);
    let heap = world.heap();
    let block = heap.allocate(1000, 1).start;
    world.os().limit_committed(world.os().committed_bytes());
    while !heap.allocate(PAGE_BYTES, 1).start.is_null() {}
    let class = class_of(64);
    assert!(refill(heap, class).0.is_null() && heap.bins().len(class) == 0);
    let n = heap.bins().len(class_of(1000));
    assert!(n > 0 && !heap.allocate(1000, 1).start.is_null(), "other bins still have blocks");
    free(heap, block);
    world.check().unwrap();
}

#[test]
fn a_refill_brings_half_of_what_a_bin_should_hold_and_grants_room_for_the_rest() {
    let world = World::new(4096);
    world.set(key::BIN_MAX, "16");
    let heap = world.heap();
    let class = class_of(64);
    assert_eq!(flush::own_capacity(heap, class), 16);
    let _in_use = heap.allocate(64, 1);
    flush::flush(heap, class, 0);
    bring_batch(heap, class);
    assert_eq!((heap.bins().len(class), heap.bins().room(class)), (8, 8));
    // An OS page has four blocks of 1000 bytes, and all of one are carved at once.
    let class = class_of(1000);
    bring_batch(heap, class);
    assert_eq!((heap.bins().len(class), heap.bins().room(class)), (4, 12));
}

#[test]
fn blocks_that_a_refill_takes_again_are_no_longer_free_in_their_span() {
    let world = World::new(4096);
    let heap = world.heap();
    let class = class_of(1000);
    let frees_more_than = |n: usize| {
        let settings = Settings::new();
        settings.set(key::DIRTY_MAX, std::format!("{}", n * block_bytes(class)).as_bytes()).unwrap();
        heap.accounts().publish_free(&world.shared.usage);
        world.shared.usage.exceeds_bound_in_spans(&settings, false)
    };
    let mut blocks: Vec<_> = (0..100).map(|_| heap.allocate(1000, 1).start).collect();
    // Some blocks of each span stay.
    for at in (0..100).rev().filter(|at| at % 10 != 0) {
        free(heap, blocks.swap_remove(at));
    }
    flush::flush(heap, class, 0);
    assert!(frees_more_than(89));
    blocks.extend((0..90).map(|_| heap.allocate(1000, 1).start));
    flush::flush(heap, class, 0);
    assert!(!frees_more_than(89));
    blocks.into_iter().for_each(|block| free(heap, block));
    flush::flush(heap, class, 0);
    assert!(!frees_more_than(0), "the spans went to the page heap");
}

#[test]
fn blocks_that_are_live_when_a_span_is_made_count_for_the_peak() {
    let world = World::new(4096);
    let (heap, class) = (world.heap(), class_of(1000));
    let blocks: Vec<_> = (0..1000).map(|_| heap.allocate(1000, 1).start).collect();
    let n_published = world.shared.usage.peak_live_bytes() / block_bytes(class) as u64;
    assert!((900..=1000).contains(&n_published), "{n_published}");
    blocks.into_iter().for_each(|block| free(heap, block));
}

#[test]
fn a_class_leaves_dirty_memory_to_others_until_it_has_filled_an_os_page_if_heaps_are_few() {
    const BLOCK: usize = 64;
    for n_more in [0, 20] {
        let world = World::new(4096);
        world.set(key::DECAY_MS, "4294967295");
        let heap = world.heap();
        (0..n_more).for_each(|_| _ = world.heap());
        let [clean, dirty] = [0; 2].map(|_| heap.allocate(20 * PAGE_BYTES, 1).start);
        free(heap, clean);
        world.shared.pages.purge();
        free(heap, dirty);
        let dirty_pages = || world.shared.pages.stats().dirty_pages;
        let before = dirty_pages();
        let mut blocks = std::vec![heap.allocate(BLOCK, 1).start];
        let taken = before - dirty_pages();
        assert_eq!(taken, u64::from(n_more > 0), "the first span, {n_more} heaps beside this one");
        blocks.extend((0..PAGE_BYTES / BLOCK).map(|_| heap.allocate(BLOCK, 1).start));
        assert_eq!(before - dirty_pages(), taken + 1, "a class that has used more takes dirty memory");
        blocks.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

/// A heap that is built and freed again and again, with one block of a class that it has no other of: that class gets clean memory once.
#[test]
fn a_class_of_which_little_is_used_takes_dirty_memory_from_its_second_span_on() {
    let world = World::new(4096);
    let heap = world.heap();
    let mut with_memory = Vec::new();
    for _ in 0..12 {
        let blocks: Vec<_> = (0..8000).map(|_| heap.allocate(320, 1).start).collect();
        let rare = heap.allocate(32, 1).start;
        blocks.iter().for_each(|&block| fill(block, 1, 320));
        free(heap, rare);
        blocks.into_iter().for_each(|block| free(heap, block));
        let stats = world.shared.pages.stats();
        with_memory.push(stats.small_pages + stats.dirty_pages);
    }
    assert!(with_memory[11] <= with_memory[1] + 1, "{with_memory:?}");
    world.check().unwrap();
}
