//! Many threads take blocks out of the same spans, and share what their bins may hold.

use crate::size_class::{N_CLASSES, class_of};
use crate::testing::{World, fill, free, is_filled};
use crate::thread::{flush, upkeep};
use freestone_base::units::PAGE_BYTES;
use freestone_testkit::ops::SplitMix;
use std::format;
use std::vec::Vec;

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
        // Of short blocks a few lines of a processor's cache.
        let at_hand = other.bins().len(class_of(size));
        assert!(!is_shared || size > 64 || at_hand + 1 == 256 / 64, "{at_hand} at hand, {case}");
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

/// One that has allocated as many in a longer time, or whose record had another thread before, shares spans of all.
#[test]
#[cfg_attr(miri, ignore = "replaces 1,500,000 blocks")]
fn a_thread_that_allocates_many_short_blocks_slowly_has_no_span_of_its_own() {
    for ends in [false, true] {
        let world = World::new(4096);
        let (mut heap, other) = (world.heap(), world.heap());
        world.shared.usage.set_n_heaps(17, 0);
        let kept = other.allocate(64, 1).start;
        for _ in 0..5 {
            (0..200_000).for_each(|_| free(heap, heap.allocate(64, 1).start));
            assert_eq!(heap.spans().n_pages(), 0, "the thread ends: {ends}");
            if ends {
                world.end(heap);
                heap = world.heap();
                world.shared.usage.set_n_heaps(17, 0);
            } else {
                world.os().advance_ms(1000);
            }
        }
        free(other, kept);
        world.check().unwrap();
    }
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
        let mut blocks = Vec::new();
        if in_refill {
            drop_all(fill());
            upkeep::flush_all(heap);
            world.os().advance_ms(10_000);
            upkeep::tick(heap, heap.now_ms());
            world.os().advance_ms(10_000);
            blocks.push(heap.allocate(4096, 1).start);
        } else {
            (0..8).for_each(|_| drop_all(fill()));
            blocks = fill();
            assert!(heap.bins().borrowed(class) > 0);
            [10_000, 20_000].into_iter().for_each(|now_ms| _ = upkeep::tick(heap, now_ms));
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

/// Blocks of an OS page that was carved for another thread read as zero; those that were written and freed do not.
#[test]
fn what_is_said_to_be_zero_in_a_span_of_all_threads_is() {
    for size in [64, 2048] {
        let world = World::new(4096);
        let (one, other, class) = (world.heap(), world.heap(), class_of(size));
        world.shared.usage.set_n_heaps(17, 0);
        let (mut n_zero, mut live) = (0, Vec::new());
        for heap in [one, other, one, other] {
            let blocks: Vec<_> = (0..50).map(|_| heap.allocate(size, 1)).collect();
            for block in &blocks {
                assert!(!block.zero || is_filled(block.start, 0, size), "{size} bytes");
                n_zero += u32::from(block.zero);
                fill(block.start, 0xAA, size);
            }
            let mut blocks = blocks.into_iter().map(|block| block.start);
            live.extend(blocks.by_ref().take(1));
            blocks.for_each(|block| free(heap, block));
            flush::flush(heap, class, 0);
        }
        assert!(n_zero > 0 && world.shared.usage.left_out(class) == live.len() as i64, "{n_zero} of {size} bytes");
        world.check().unwrap();
    }
}

/// In dirty memory, a batch of long blocks spans OS pages: that costs no memory.
#[test]
fn of_dirty_memory_a_batch_for_all_threads_is_several_os_pages() {
    for (is_dirty, at_hand) in [(false, 1), (true, 7)] {
        let world = World::new(4096);
        let heap = world.heap();
        world.shared.usage.set_n_heaps(17, 0);
        if is_dirty {
            free(heap, heap.allocate(1 << 20, 1).start);
        }
        let in_span = PAGE_BYTES / 2048;
        // Of the next span, with half as many as it holds.
        (0..=in_span).for_each(|_| _ = heap.allocate(2048, 1));
        assert_eq!(heap.bins().len(class_of(2048)), at_hand, "dirty: {is_dirty}");
    }
}
