use super::*;
use crate::size_class::class_of;
use crate::testing::{World, free, freed};
use crate::thread::upkeep;
use proptest::prelude::*;
use std::vec::Vec;

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 24 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// A thread has a burst of many sizes, frees all of it in any order, and sleeps: its bins are empty and it owns no span.
    #[test]
    fn a_thread_whose_burst_is_over_keeps_nothing_of_it(
        sizes in proptest::collection::vec(16usize..1100, if cfg!(miri) { 400..401 } else { 4000..9000 }),
        order in 0usize..3,
        n_heaps in proptest::sample::select(vec![1u32, 2, 40, 1000]),
    ) {
        let world = World::new(4096);
        let heap = world.heap();
        // Some classes never overflow, so the burst needs one that does.
        let many = core::iter::repeat_n(700, if cfg!(miri) { 300 } else { 0 });
        world.shared.usage.set_n_heaps(n_heaps, 0);
        let mut blocks: Vec<_> = sizes.iter().copied().chain(many).map(|size| heap.allocate(size, 1).start).collect();
            match order {
                0 => {}
                1 => blocks.reverse(),
                _ => blocks.sort_by_key(|block| block.addr().wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            }
            blocks.into_iter().for_each(|block| free(heap, block));
        for class in 0..crate::size_class::N_CLASSES {
            prop_assert_eq!(heap.bins().len(class), 0, "bin of class {}", class);
        }
        prop_assert_eq!(world.small_span_pages(), 0);
        world.check().unwrap();
    }
}

/// The bins of a program that repeats a loop are not emptied each time: blocks that fit them stay.
#[test]
fn a_loop_whose_blocks_fit_its_bins_never_frees_its_spans() {
    let world = World::new(4096);
    let heap = world.heap();
    let mut held = 0;
    for round in 0..50 {
        let blocks: Vec<_> = (0..60).map(|i| heap.allocate(16 + i * 16, 1).start).collect();
        blocks.into_iter().for_each(|block| free(heap, block));
        if round == 0 {
            held = world.shared.pages.stats().small_pages;
        }
        assert_eq!(world.shared.pages.stats().small_pages, held, "round {round}");
    }
    assert!(held > 0);
}

/// Among many heaps a bin has room for a few blocks, and one block more overflows it: that is no burst, or each free of a class's last block would empty
/// all bins, and its next allocation take a span.
#[test]
fn a_thread_that_replaces_a_few_blocks_keeps_its_spans_however_many_heaps_there_are() {
    for n_heaps in [1, 40, 1000] {
        let world = World::new(4096);
        let heap = world.heap();
        world.shared.usage.set_n_heaps(n_heaps, 0);
        let (mut random, n) = (1_u32, if cfg!(miri) { 300 } else { 4000 });
        let mut draw = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below
        };
        let mut slots: Vec<_> = (0..10).map(|_| heap.allocate(16, 1).start).collect();
        let (mut held, mut n_changes) = (0, 0);
        for replacement in 0..2 * n {
            let slot = draw(10) as usize;
            free(heap, slots[slot]);
            slots[slot] = heap.allocate(16 + draw(1024) as usize, 1).start;
            let now_held = world.small_span_pages();
            if replacement >= n && now_held != held {
                n_changes += 1;
            }
            held = now_held;
        }
        assert!(n_changes * 100 <= n, "{n_heaps} heaps: {n_changes} changes in {n} replacements");
    }
}

/// Work that is deferred until a flush turns to another span must be done before the heap loses the span.
#[test]
fn a_block_that_is_returned_outside_a_flush_defers_no_work() {
    let world = World::new(4096);
    world.set(crate::config::key::DIRTY_MAX, "0");
    let heap = world.heap();
    let class = crate::size_class::class_of(1024);
    let blocks: Vec<_> = (0..64).map(|_| heap.allocate(1024, 1).start).collect();
    for &block in blocks.iter().skip(1) {
        free_remote(heap, freed(block, class), heap.generation());
        assert_eq!(heap.purge().turn_to(PageIndex::NONE), None, "work was deferred");
    }
    assert!(world.os().purged_bytes() > 0, "no OS page was given back");
    free(heap, blocks[0]);
    world.end(heap);
    world.check().unwrap();
}

/// Blocks of one class, all live.
fn blocks(own: Own<'_, freestone_os::fake::Fake>, bytes: usize, n: usize) -> Vec<*mut u8> {
    (0..n).map(|_| own.allocate(bytes, 1).start).collect()
}

/// Pushes freed blocks, of any owner, without checking the bin.
fn fill_bin(own: Own<'_, freestone_os::fake::Fake>, class: usize, blocks: &[*mut u8]) {
    for &block in blocks {
        let _ = own.bins().push(freed(block, class));
    }
}

#[test]
fn a_flush_gives_own_blocks_to_their_spans_and_others_to_their_owners_in_any_order() {
    let world = World::new(4096);
    let (heap, other) = (world.heap(), world.heap());
    let class = class_of(1000);
    let (own, foreign) = (blocks(heap, 1000, 40), blocks(other, 1000, 40));
    let mixed: Vec<_> = own.iter().zip(&foreign).flat_map(|(own, foreign)| [*own, *foreign]).collect();
    upkeep::flush_all(heap);
    fill_bin(heap, class, &mixed);
    flush(heap, class, 0);
    assert_eq!(heap.bins().len(class), 0);
    world.check().unwrap();
    route::send_all(heap);
    crate::thread::drain::drain(other);
    flush(other, class, 0);
    [heap, other].into_iter().for_each(upkeep::flush_all);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0, "no block was lost");
}

#[test]
fn a_flush_keeps_as_many_of_the_hottest_blocks_as_it_should() {
    let world = World::new(4096);
    let heap = world.heap();
    let class = class_of(64);
    let live = blocks(heap, 64, 100);
    upkeep::flush_all(heap);
    fill_bin(heap, class, &live);
    flush(heap, class, 30);
    assert_eq!(heap.bins().len(class), 30);
    assert_eq!(heap.bins().first(class).cast(), live[99], "the block freed last is the first");
    world.check().unwrap();
}

#[test]
fn a_block_freed_twice_is_refused_and_the_rest_of_the_bin_is_returned() {
    let world = World::new(4096).ignoring_misuse();
    let heap = world.heap();
    let class = class_of(64);
    let live = blocks(heap, 64, 20);
    upkeep::flush_all(heap);
    // Between the two frees the bin is flushed: the second free is of a block that its span has back.
    fill_bin(heap, class, &live[..1]);
    flush(heap, class, 0);
    fill_bin(heap, class, &[live[1], live[0], live[2]]);
    flush(heap, class, 0);
    fill_bin(heap, class, &live[3..]);
    flush(heap, class, 0);
    assert_eq!(heap.bins().len(class), 0);
    world.check().unwrap();
    assert_eq!(world.small_span_pages(), 0);
}

/// Few small blocks and a bound of 0: each OS page goes back as its last block is returned, whatever the order.
#[test]
fn above_the_bound_the_os_pages_that_a_flush_empties_go_back_to_the_operating_system() {
    let world = World::new(4096);
    world.set(crate::config::key::DIRTY_MAX, "0");
    let heap = world.heap();
    let class = class_of(256);
    let live = blocks(heap, 256, 200);
    upkeep::flush_all(heap);
    let before = world.os().purged_bytes();
    fill_bin(heap, class, &live[1..]);
    flush(heap, class, 0);
    flush(heap, class, 0);
    assert!(world.os().purged_bytes() >= before + 8 * 4096, "OS pages without an allocated block stay");
    assert!(
        heap.purge().is_at(PageIndex::NONE) && heap.purge().turn_to(PageIndex::NONE).is_none(),
        "nothing is left to do"
    );
    world.check().unwrap();
}

#[test]
fn a_bin_is_granted_no_more_room_than_it_may_hold() {
    let world = World::new(4096);
    let heap = world.heap();
    let class = class_of(64);
    let capacity = i64::from(bin_capacity(heap, class));
    for block in blocks(heap, 64, 5000) {
        push(heap, freed(block, class));
        assert!(heap.bins().len(class) <= capacity.max(64) + 1, "{} in a bin of {capacity}", heap.bins().len(class));
        assert!(heap.bins().len(class) + heap.bins().room(class) <= capacity.max(64) + 1);
    }
    world.check().unwrap();
}

/// A class without a burst, of which a block is live, is in use: it may stay so for as long as the thread.
#[test]
fn a_burst_that_ends_leaves_a_class_in_use_its_bin_and_sweeps_the_spans() {
    for n_in_use in [0, 1] {
        let world = World::new(4096);
        let heap = world.heap();
        let (in_use, burst) = (class_of(64), class_of(700));
        let _kept = blocks(heap, 64, n_in_use);
        blocks(heap, 700, 4000).into_iter().for_each(|block| free(heap, block));
        assert_eq!((heap.bins().len(burst), heap.bins().live(burst)), (0, 0));
        assert_eq!(heap.bins().len(in_use) > 0, n_in_use == 1);
        let later_ms = heap.now_ms() + 2;
        assert!(!heap.purge().begin_sweep(later_ms, 1000), "a sweep has just begun");
    }
}

/// The most blocks that stay in bins, and OS pages in spans, after a burst of which so many blocks of each class are live for good.
#[test]
#[cfg_attr(miri, ignore = "takes 36,000 blocks")]
fn a_thread_keeps_little_beside_the_blocks_that_stay_of_a_burst() {
    for n_stay in [1, 3, 10] {
        let world = World::new(4096);
        let heap = world.heap();
        let sizes = [40, 100, 500, 1000];
        let all = sizes.map(|bytes| blocks(heap, bytes, 3000));
        for at in 0..3000 {
            for blocks in &all {
                if at % (3000 / n_stay) != 0 {
                    free(heap, blocks[at]);
                }
            }
        }
        let n_cached: i64 = sizes.map(|bytes| heap.bins().len(class_of(bytes))).into_iter().sum();
        assert!(n_cached <= 4 * n_stay as i64, "{n_cached} blocks are cached beside {n_stay} of each class");
        heap.accounts().publish_free(&world.shared.usage);
        let most = (sizes.len() * n_stay * 6144) as i64;
        let free_bytes = world.shared.usage.free_in_spans();
        assert!(free_bytes <= most, "{free_bytes} bytes have memory beside {n_stay} of each class");
        world.check().unwrap();
    }
}

#[test]
fn blocks_of_os_pages_that_a_flush_gives_back_do_not_count_as_free_in_their_span() {
    let world = World::new(4096);
    world.set(crate::config::key::DIRTY_MAX, "0");
    let heap = world.heap();
    blocks(heap, 1024, 64).into_iter().skip(1).for_each(|block| free(heap, block));
    flush(heap, class_of(1024), 0);
    heap.accounts().publish_free(&world.shared.usage);
    let settings = crate::config::Settings::new();
    settings.set(crate::config::key::DIRTY_MAX, b"4096").unwrap();
    assert!(world.os().purged_bytes() > 0 && !world.shared.usage.exceeds_bound_in_spans(&settings, false));
}

#[test]
fn what_a_full_bin_gives_back_counts_as_flushed() {
    let world = World::new(4096);
    let heap = world.heap();
    let class = class_of(64);
    let live = blocks(heap, 64, 3000);
    flush(heap, class, 0);
    let _ = heap.bins().restart_flushed(class);
    let mut n_freed = 0;
    for block in live {
        push(heap, freed(block, class));
        n_freed += 1;
        if heap.bins().flushed(class) > 0 {
            break;
        }
    }
    assert!(heap.bins().len(class) > 0);
    assert_eq!(i64::from(heap.bins().flushed(class)), n_freed - heap.bins().len(class));
    world.check().unwrap();
}

#[test]
fn blocks_that_were_set_aside_are_flushed_with_the_others() {
    for ends in [false, true] {
        let (world, class) = (World::new(4096), class_of(500));
        let heap = world.heap();
        let blocks: Vec<_> = (0..20).map(|_| heap.allocate(500, 1).start).collect();
        blocks.into_iter().for_each(|block| free(heap, block));
        heap.bins().set_aside(class);
        assert!(heap.bins().has_aside(class));
        if ends {
            world.end(heap);
        } else {
            flush(heap, class, 0);
            assert!(!heap.bins().has_aside(class));
        }
        world.check().unwrap();
        assert_eq!(world.small_span_pages(), 0);
    }
}

/// A thread's bins are shared with other threads'; an explicit heap's with all heaps, for there may be thousands.
#[test]
fn idle_explicit_heaps_leave_the_bins_of_threads_as_large_as_they_were() {
    let world = World::new(4096);
    let (heap, class) = (world.heap(), class_of(4000));
    let alone = bin_capacity(heap, class);
    let explicit = world.explicit_heap();
    let one = bin_capacity(explicit.enter().own(), class);
    let idle: Vec<_> = (0..100).map(|_| world.explicit_heap()).collect();
    assert_eq!(bin_capacity(heap, class), alone);
    assert!(bin_capacity(explicit.enter().own(), class) < one);
    idle.into_iter().for_each(|heap| world.destroy(heap));
    assert_eq!((bin_capacity(heap, class), world.shared.usage.n_thread_heaps()), (alone, 1));
    world.shared.usage.set_n_heaps(2000, 1000);
    assert!(bin_capacity(heap, class) < alone);
}

/// A history in which others freed what the thread allocated, or the thread what others did.
#[test]
#[cfg_attr(miri, ignore = "takes 240,000 blocks")]
fn a_thread_that_has_exchanged_blocks_keeps_nothing_of_a_burst_either() {
    for by_other in [true, false] {
        let world = World::new(4096);
        let (heap, other) = (world.heap(), world.heap());
        let (allocates, frees) = if by_other { (heap, other) } else { (other, heap) };
        for _ in 0..3 {
            let blocks: Vec<_> = (0..1000).map(|at| allocates.allocate(16 + at * 37 % 1000, 1).start).collect();
            blocks.into_iter().for_each(|block| free(frees, block));
            upkeep::flush_all(frees);
        }
        for _ in 0..2 {
            let blocks: Vec<_> = (0..60_000).map(|at| heap.allocate(16 + at * 37 % 1000, 1).start).collect();
            blocks.into_iter().for_each(|block| free(heap, block));
        }
        let n_cached: i64 = (0..crate::size_class::N_CLASSES).map(|class| heap.bins().len(class)).sum();
        assert_eq!((n_cached, heap.heap().span_pages()), (0, 0), "freed by others: {by_other}");
        world.check().unwrap();
    }
}
