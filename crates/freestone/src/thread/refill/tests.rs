use super::{bring_batch, refill};
use crate::config::{Settings, key};
use crate::size_class::{N_CLASSES, block_bytes, class_of};
use crate::testing::{World, free};
use crate::thread::flush;
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use core::mem;
use freestone_base::units::PAGE_BYTES;
use freestone_os::fake::Fake;
use freestone_testkit::ops::SplitMix;
use std::collections::BTreeSet;
use std::vec::Vec;

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
fn burst(heap: Own<'_, Fake>, n: usize) {
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(64, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
}

#[test]
fn the_refill_of_a_bin_raises_its_capacity_by_what_was_flushed() {
    let world = World::new(4096);
    let heap = world.heap();
    let class = class_of(64);
    let first = flush::own_capacity(heap, class);
    burst(heap, 5 * first as usize);
    assert!(heap.bins().flushed(class) > 0 && flush::own_capacity(heap, class) == first);
    let (flushed, _block) = (heap.bins().flushed(class), heap.allocate(64, 1));
    assert_eq!(flush::own_capacity(heap, class), first + flushed);
    assert_eq!(heap.bins().flushed(class), 0, "it counts anew");
    assert_eq!(heap.bins().borrowed(class), 0, "there are few threads");
}

#[test]
fn a_bin_whose_share_has_room_for_what_was_flushed_borrows_none() {
    let world = World::new(4096);
    let heap = world.heap();
    world.shared.usage.set_n_heaps(17, 0);
    let first = flush::bin_capacity(heap, class_of(64));
    burst(heap, 2 * first as usize);
    let _block = heap.allocate(64, 1);
    assert!(flush::bin_capacity(heap, class_of(64)) > first);
    assert_eq!(heap.bins().borrowed(class_of(64)), 0);
}

#[test]
fn refills_from_spans_cancel_the_end_of_a_burst() {
    let world = World::new(4096);
    let heap = world.heap();
    burst(heap, 3000);
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

/// With many threads each leaves a span without an owner once it has its batch: they take blocks out of the same spans, and give them back there.
#[test]
fn many_threads_take_blocks_out_of_the_same_spans() {
    for (size, n_heaps, explicit, is_shared) in [
        (2048, 17, false, true),
        (2048, 16, false, false),
        (64, 17, false, true),
        (64, 16, false, false),
        (2048, 17, true, false),
        (64, 17, true, false),
    ] {
        let world = World::new(4096);
        let (one, other, explicit) = (world.heap(), world.heap(), explicit.then(|| world.explicit_heap()));
        world.shared.usage.set_n_heaps(n_heaps, 0);
        let entered = explicit.map(|heap| heap.enter());
        let other = entered.as_ref().map_or(other, |entered| entered.own());
        let first = one.allocate(size, 1).start;
        let pages = world.small_span_pages();
        let second = other.allocate(size, 1).start;
        let case = format!("{size} bytes, {n_heaps} heaps");
        assert_eq!(world.small_span_pages() == pages, is_shared, "{case}");
        let left_out = world.shared.usage.left_out(class_of(size));
        let is_left = n_heaps == 17;
        assert_eq!((left_out > 0, one.spans().n_pages() == 0), (is_left, is_left), "{case}");
        world.check().unwrap();
        // A block of no owner goes into the bin of whoever frees it, and from there back into its span: the last one empties it.
        if is_shared {
            free(other, first);
            free(other, second);
            [one, other].into_iter().for_each(|heap| flush::flush(heap, class_of(size), 0));
            assert_eq!((world.small_span_pages(), world.shared.usage.left_out(class_of(size))), (0, 0), "{case}");
            world.check().unwrap();
        }
    }
}

/// A thread that holds more than little of a class of short blocks has spans of its own once those of all are full, until it has none of their blocks.
#[test]
fn a_thread_that_holds_many_short_blocks_has_spans_of_its_own() {
    let world = World::new(4096);
    let (heap, other, class) = (world.heap(), world.heap(), class_of(64));
    world.shared.usage.set_n_heaps(17, 0);
    let in_span = PAGE_BYTES / 64;
    for _ in 0..2 {
        let mut blocks: Vec<_> = (0..in_span + 100).map(|_| heap.allocate(64, 1).start).collect();
        assert_eq!(heap.spans().n_pages(), 1);
        let left_out = world.shared.usage.left_out(class);
        assert!(left_out >= in_span as i64 - 100, "{left_out} in spans of all");
        blocks.push(other.allocate(64, 1).start);
        assert_eq!((heap.spans().n_pages(), other.spans().n_pages()), (1, 0));
        world.check().unwrap();
        blocks.into_iter().for_each(|block| free(heap, block));
        [heap, other].into_iter().for_each(|heap| flush::flush(heap, class, 0));
        assert_eq!((heap.spans().n_pages(), world.shared.usage.left_out(class)), (0, 0));
    }
}

/// A thread that replaces a few short blocks often enough takes them from spans of its own, and gives back those that it had before.
#[test]
#[cfg_attr(miri, ignore = "replaces 300,000 blocks")]
fn a_thread_that_allocates_many_short_blocks_has_a_span_of_its_own() {
    let world = World::new(4096);
    let (heap, other) = (world.heap(), world.heap());
    world.shared.usage.set_n_heaps(17, 0);
    // Blocks of others keep the span of all where it is.
    let kept = other.allocate(64, 1).start;
    let is_own = |block: *mut u8| {
        let entry = world.shared.pages.view().entry(block.addr());
        entry.map(|entry| entry.generation()) == Some(heap.generation())
    };
    let mut n_own = 0;
    for n in 0..300_000 {
        let block = heap.allocate(64, 1).start;
        n_own += u32::from(is_own(block));
        assert!(n_own == 0 || n >= 1 << 18, "of its own after {n}");
        free(heap, block);
    }
    assert!(n_own > 30_000, "{n_own}");
    free(other, kept);
    world.check().unwrap();
}

/// A bin that gives back what it has borrowed gives back the room that it was granted for that, at a tick of its thread and of a tick in the midst of a refill.
#[test]
fn a_bin_that_gave_back_what_it_had_borrowed_holds_its_share() {
    for in_refill in [false, true] {
        let world = World::new(4096);
        let (heap, class) = (world.heap(), class_of(4096));
        world.shared.usage.set_n_heaps(1000, 0);
        let fill = || (0..100).map(|_| heap.allocate(4096, 1).start).collect::<Vec<_>>();
        let drop_all = |blocks: Vec<*mut u8>| blocks.into_iter().for_each(|block| free(heap, block));
        (0..8).for_each(|_| drop_all(fill()));
        let mut blocks = fill();
        if in_refill {
            drop_all(mem::take(&mut blocks));
            upkeep::flush_all(heap);
            world.os().advance_ms(10_000);
            upkeep::tick(heap, heap.now_ms());
            world.os().advance_ms(10_000);
            blocks.push(heap.allocate(4096, 1).start);
        } else {
            assert!(heap.bins().borrowed(class) > 0);
            [10_000, 20_000].into_iter().for_each(|now_ms| upkeep::tick(heap, now_ms));
        }
        let (borrowed, capacity) = (heap.bins().borrowed(class), flush::bin_capacity(heap, class));
        assert_eq!((borrowed, world.shared.usage.room().lent_bytes(), capacity), (0, 0, 1), "{in_refill}");
        let room = heap.bins().room(class);
        assert!(room <= 1, "{room} in the midst of a refill: {in_refill}");
        drop_all(blocks);
    }
}

/// Of a class whose spans all threads share, a thread takes out half as many blocks as it holds.
#[test]
fn a_thread_that_holds_few_long_blocks_takes_few() {
    let world = World::new(4096);
    let (one, other, class) = (world.heap(), world.heap(), class_of(4096));
    world.shared.usage.set_n_heaps(17, 0);
    let blocks: Vec<_> = (0..128).map(|_| other.allocate(4096, 1).start).collect();
    blocks.into_iter().step_by(2).for_each(|block| free(other, block));
    flush::flush(other, class, 0);
    let mut longest = 0;
    for n_live in 1..=50 {
        let _block = one.allocate(4096, 1);
        let at_hand = one.bins().len(class);
        assert!(at_hand <= n_live / 2, "{at_hand} blocks at hand beside {n_live}");
        longest = longest.max(at_hand);
    }
    assert_eq!(longest + 1, i64::from(flush::bin_capacity(one, class) / 2));
}

/// Of a thousand threads one runs: it replaces blocks of which its bins have a share of one each.
#[test]
fn one_of_many_threads_borrows_room_for_what_it_replaces_and_gives_it_back() {
    let world = World::new(4096);
    let heap = world.heap();
    world.shared.usage.set_n_heaps(1000, 0);
    let (mut random, n) = (SplitMix(1), if cfg!(miri) { 200 } else { 4000 });
    let left_out = || (0..N_CLASSES).map(|class| world.shared.usage.left_out(class)).sum::<i64>();
    let mut slots: Vec<_> = (0..20).map(|_| heap.allocate(1024, 1).start).collect();
    let (mut before, mut n_changes) = (0, 0);
    for replacement in 0..2 * n {
        let slot = random.below(20);
        free(heap, slots[slot]);
        slots[slot] = heap.allocate(1024 + random.below(7000), 1).start;
        n_changes += u32::from(replacement >= n && left_out() != before);
        before = left_out();
    }
    assert!(cfg!(miri) || n_changes * 20 <= n, "{n_changes} replacements in {n} went to spans");
    assert!(world.shared.usage.room().lent_bytes() > 0);
    slots.into_iter().for_each(|block| free(heap, block));
    world.end(heap);
    assert_eq!(world.shared.usage.room().lent_bytes(), 0);
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
