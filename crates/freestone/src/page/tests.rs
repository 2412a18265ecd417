#![allow(unsafe_code)]
//! What becomes of pages: kept, given back, made huge, limited. Over the fake kernel, through whole heaps.
//!
//! Long because: one test for each way a page can go, over shared helpers.
use crate::config::key;
use crate::page::runs::Extent;
use crate::span::Kind;
use crate::testing::{OneHeap, World};
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use freestone_base::units::{PAGE_BYTES_LOG2, Pages};
use freestone_os::Errno;
use freestone_os::fake::Failure;
use freestone_testkit::ops::{Mix, generate, play};
use std::vec::Vec;

const MIB: usize = 1 << 20;
const HUGE_BYTES: usize = 2 << 20;

fn dirty_bytes(world: &World) -> u64 {
    world.shared.pages.stats().free_with_memory() << PAGE_BYTES_LOG2
}

/// Every option that changes how memory is had or given back, with streams that have large blocks, and each failing call.
#[test]
fn every_way_of_having_memory_keeps_every_promise() {
    let most_bytes = if cfg!(miri) { 200_000 } else { 9 * MIB };
    let mix = Mix { ids: 12, least_bytes: 0, most_bytes, most_align: 128 << 10, reallocations_percent: 40 };
    let stream = generate(mix, 0, if cfg!(miri) { 30 } else { 250 }, 11);
    for (index, value) in [
        (key::THP, "auto"),
        (key::THP, "on"),
        (key::THP, "off"),
        (key::PREFAULT, "touch"),
        (key::PREFAULT, "populate"),
        (key::PURGE, "free"),
        (key::DIRTY_MAX, "0"),
        (key::SPAN_SIZE, "128k"),
        (key::SPAN_SIZE, "256k"),
        (key::PROFILE, "realtime"),
        (key::PROFILE, "lean"),
        (key::PROFILE, "throughput"),
    ] {
        for fails in if cfg!(miri) { &[true][..] } else { &[false, true] } {
            let world = World::new(4096);
            world.os().give_huge_pages(HUGE_BYTES);
            world.set(index, value);
            let heap = world.heap();
            // Every call after the 20th fails: advice that is not taken must not matter, memory that is not there must be told.
            let plan = Failure { nth_call: 20, errno: Errno::NOMEM, for_good: true };
            world.os().plan(fails.then_some(plan));
            let player = play(&stream, OneHeap { world: &world, heap }, 16);
            assert!(player.is_ok(), "{index}={value}, failing {fails}: {}", player.err().unwrap());
            world.os().plan(None);
            // SAFETY: the heap is not used afterwards.
            unsafe { world.threads.death(heap) };
            world.check().unwrap();
        }
    }
}

/// Blocks of 8 MiB are replaced one after the other: what was purged is wanted again at once, so that purging stops.
#[test]
fn large_blocks_that_come_and_go_stop_being_purged_and_memory_goes_back_when_they_stop() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let mut blocks: Vec<_> = (0..4).map(|_| heap.allocate(8 * MIB, 1).start).collect();
        let mut churn = |n: usize| {
            for at in 0..n {
                // Three go and three come: 24 MiB are free in between, more than the bound.
                let gone = [at % 4, (at + 1) % 4, (at + 2) % 4];
                gone.iter().for_each(|&slot| heap.free(blocks[slot]));
                gone.iter().for_each(|&slot| blocks[slot] = heap.allocate(8 * MIB, 1).start);
            }
        };
        churn(4);
        let before = world.os().purged_bytes();
        churn(20);
        assert_eq!(world.os().purged_bytes(), before, "what is wanted again is purged");
        assert!(world.shared.pages.stats().peak_pages << PAGE_BYTES_LOG2 <= 60 * MIB as u64);
        blocks.into_iter().for_each(|block| heap.free(block));
        assert!(dirty_bytes(&world) <= 16 * MIB as u64, "an idle program keeps {}", dirty_bytes(&world));
        world.os().advance_ms(3000);
        world.shared.pages.purge_due_now();
        assert_eq!(dirty_bytes(&world), 0);
    }
    world.check().unwrap();
}

#[test]
fn a_block_is_put_together_of_dirty_pages_and_the_free_ones_beside_them() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        for behind in [true, false] {
            let blocks: Vec<_> = (0..3).map(|_| heap.allocate(4 * MIB, 1).start).collect();
            // Clean beside dirty: one is purged, then its neighbour is freed.
            let (clean, dirty) = if behind { (1, 0) } else { (0, 1) };
            heap.free(blocks[clean]);
            world.shared.pages.purge();
            heap.free(blocks[dirty]);
            let block = heap.allocate(6 * MIB, 1);
            assert!((blocks[0]..blocks[2]).contains(&block.start), "{:?} is elsewhere: {blocks:?}", block.start);
            assert!(!block.zero);
            world.check().unwrap();
            heap.free(block.start);
            heap.free(blocks[2]);
            world.shared.pages.purge();
        }
    }
    world.check().unwrap();
}

#[test]
fn dense_large_blocks_get_huge_pages_and_give_the_request_back_with_the_memory() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(9 * MIB, 1).start;
        assert_eq!(block.addr() % HUGE_BYTES, 0);
        assert_eq!(world.os().huge_bytes(), 10 * MIB, "the block is made whole huge pages long");
        heap.free(block);
        world.shared.pages.purge();
        assert_eq!(world.os().huge_bytes(), 0);
        assert_eq!(heap.allocate(MIB, 1).start.addr() % (1 << PAGE_BYTES_LOG2), 0);
        assert_eq!(world.os().huge_bytes(), 0, "small ones get none");
    }
    world.check().unwrap();
}

/// The fake kernel, like the real one, is only asked about whole OS pages.
#[test]
fn how_dense_a_block_was_is_asked_at_the_start_of_os_pages_of_any_size() {
    for os_page_log2 in 12..=PAGE_BYTES_LOG2 {
        let world = World::new(1 << os_page_log2);
        world.os().give_huge_pages(HUGE_BYTES);
        world.os().say_resident(false);
        let heap = world.heap();
        let block = heap.allocate(68 << PAGE_BYTES_LOG2, 1).start;
        assert_eq!(world.os().huge_bytes(), 2 * HUGE_BYTES);
        // SAFETY: the block is this test's.
        unsafe { heap.free(block) };
        world.shared.pages.purge();
        let _ = heap.allocate(68 << PAGE_BYTES_LOG2, 1);
        assert_eq!(world.os().huge_bytes(), 0, "it was found empty");
    }
}

/// The fake kernel says that nothing is resident: as if no block was ever written.
#[test]
fn programs_of_sparse_blocks_pay_for_one_of_them() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    world.os().say_resident(false);
    let heap = world.heap();
    let blocks: Vec<_> = (0..4).map(|_| heap.allocate(8 * MIB, 1).start).collect();
    assert_eq!(world.os().huge_bytes(), 8 * MIB);
    // SAFETY: the blocks are this test's.
    unsafe { blocks.into_iter().for_each(|block| heap.free(block)) };
    world.check().unwrap();
}

#[test]
fn the_soft_limit_purges_first_and_then_asks_for_room_and_the_hard_one_refuses() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.set(key::LIMIT, "40m");
    world.set(key::LIMIT_HARD, "60m");
    let (heap, pages) = (world.heap(), &world.shared.pages);
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let mut blocks: Vec<_> = (0..3).map(|_| heap.allocate(10 * MIB, 1).start).collect();
        heap.free(blocks.remove(0));
        // 20 in use, 10 dirty: 15 more fit if half of the dirty ones go.
        blocks.push(heap.allocate(15 * MIB, 1).start);
        assert!(dirty_bytes(&world) <= 5 * MIB as u64 && !pages.is_pressed());
        blocks.push(heap.allocate(10 * MIB, 1).start);
        assert!(pages.is_pressed(), "45 of 40 MiB are in use");
        pages.relieved();
        blocks.push(heap.allocate(70_000, 1).start);
        assert!(!pages.is_pressed(), "it was said, and little has changed");
        assert!(heap.allocate(20 * MIB, 1).start.is_null(), "that would be 65 of 60 MiB");
        assert!(heap.reallocate(blocks[0], 30 * MIB, 1).is_null());
        blocks.push(heap.allocate(10 * MIB, 1).start);
        assert!(!blocks.contains(&core::ptr::null_mut()));
        blocks.into_iter().for_each(|block| heap.free(block));
    }
    world.check().unwrap();
}

#[test]
fn an_explicit_heap_has_no_more_than_its_limit() {
    let world = World::new(4096);
    let explicit = world.explicit_heap();
    explicit.set_limit(Some(32)).unwrap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let entered = explicit.enter();
        let heap = entered.own();
        let large = heap.allocate(MIB, 1).start;
        assert!(!large.is_null());
        assert!(heap.reallocate(large, 3 * MIB, 1).is_null(), "growing counts as well");
        let small: Vec<_> =
            (0..10_000).map(|_| heap.allocate(1000, 1).start).take_while(|block| !block.is_null()).collect();
        assert!((900..1100).contains(&small.len()), "{} blocks of 1000 bytes in 1 MiB", small.len());
        small.into_iter().for_each(|block| heap.free(block));
        upkeep::flush_all(heap);
        heap.free(large);
        assert!(!heap.allocate(MIB + MIB / 2, 1).start.is_null(), "what was freed does not count");
        drop(entered);
        world.threads.destroy(explicit);
    }
    world.check().unwrap();
}

#[test]
fn dirty_memory_is_told_by_age() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let walls: Vec<_> = (0..8).map(|_| heap.allocate(MIB, 1).start).collect();
        for (at, &wall) in walls.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
            heap.free(wall);
            world.os().advance_ms(if at < 6 { 260 } else { 0 });
        }
        // Freed 780, 520, 260 and 0 ms ago, of a decay time of 1000.
        let mib = MIB as u64;
        assert_eq!(world.shared.pages.dirty_by_age(), [mib, mib, 2 * mib, 0]);
        walls.iter().skip(1).step_by(2).for_each(|&wall| heap.free(wall));
    }
}

/// Blocks of 1 MiB leave holes that blocks of 6 MiB do not fit in: under a limit of address space the holes are unmapped for them.
#[test]
fn where_address_space_is_short_clean_holes_make_way_for_longer_blocks() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let ones: Vec<_> = (0..40).map(|_| heap.allocate(MIB, 1).start).collect();
        ones.iter().step_by(2).for_each(|&block| heap.free(block));
        world.shared.pages.purge();
        world.os().limit_committed(world.os().committed_bytes() + MIB);
        let sixes: Vec<_> = (0..3).map(|_| heap.allocate(6 * MIB, 1).start).collect();
        assert!(sixes.iter().all(|block| !block.is_null()), "20 MiB of holes, and no 18 MiB");
        sixes.iter().for_each(|&block| block.write_bytes(7, 6 * MIB));
        world.check().unwrap();
        assert!(heap.allocate(20 * MIB, 1).start.is_null());
        world.check().unwrap();
        sixes.into_iter().for_each(|block| heap.free(block));
        world.shared.pages.purge();
        let ones_again: Vec<_> = (0..20).map(|_| heap.allocate(MIB, 1).start).collect();
        assert!(ones_again.iter().all(|block| !block.is_null()), "what was unmapped is mapped again");
        world.check().unwrap();
        ones.into_iter().skip(1).step_by(2).chain(ones_again).for_each(|block| heap.free(block));
    }
    world.check().unwrap();
}

/// Any stream, with little more address space than it needs: null or success, never a broken promise.
#[test]
fn streams_live_with_little_address_space() {
    let most_bytes = if cfg!(miri) { 200_000 } else { 5 * MIB };
    let mix = Mix { ids: 12, least_bytes: 0, most_bytes, most_align: 128 << 10, reallocations_percent: 40 };
    for seed in 0..if cfg!(miri) { 1 } else { 12 } {
        let stream = generate(mix, 0, if cfg!(miri) { 30 } else { 300 }, seed);
        let world = World::new(4096);
        let heap = world.heap();
        world.os().limit_committed(world.os().committed_bytes() + 24 * MIB);
        let player = play(&stream, OneHeap { world: &world, heap }, 8);
        assert!(player.is_ok(), "{seed}: {}", player.err().unwrap());
    }
}

/// The first call that a moving `realloc` makes is the move. The kernel unmaps where it should go to, and then will not.
#[test]
fn a_block_whose_move_fails_when_its_target_is_unmapped_moves_elsewhere_with_its_contents() {
    for errno in [Errno::NOMEM, Errno::EXIST] {
        for for_good in [false, true] {
            let world = World::new(4096);
            let heap = world.heap();
            // SAFETY: the heap and the blocks are this test's.
            unsafe {
                let (block, wall) = (heap.allocate(MIB, 1).start, heap.allocate(MIB, 1).start);
                block.write_bytes(9, MIB);
                let room = heap.allocate(40 * MIB, 1).start;
                heap.free(room);
                world.shared.pages.purge();
                world.os().plan_half_way(Failure { nth_call: 0, errno, for_good });
                let moved = heap.reallocate(block, 3 * MIB, 1);
                world.os().plan(None);
                assert!(!moved.is_null() || for_good);
                let lost = world.shared.pages.stats();
                assert_eq!(
                    (lost.reserved_pages, lost.foreign_pages),
                    if errno == Errno::NOMEM { (16, 0) } else { (0, 16) }
                );
                let kept = if moved.is_null() { block } else { moved };
                assert!(core::slice::from_raw_parts(kept, MIB).iter().all(|&byte| byte == 9), "{errno:?}: lost");
                assert!(world.os().is_untouched_outside(), "{errno:?}: memory that is not mapped was written");
                world.check().unwrap();
                [kept, wall].into_iter().for_each(|block| heap.free(block));
            }
            world.check().unwrap();
        }
    }
}

/// What was unmapped, for address space was short, somebody else has mapped when it is wanted again.
#[test]
fn reserved_pages_that_somebody_else_has_mapped_are_given_up() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        // There is clean memory for everything: the first call from then on is the move.
        heap.free(heap.allocate(16 * MIB, 1).start);
        world.shared.pages.purge();
        let (block, wall) = (heap.allocate(MIB, 1).start, heap.allocate(MIB, 1).start);
        world.os().plan_half_way(Failure { nth_call: 0, errno: Errno::NOMEM, for_good: false });
        let moved = heap.reallocate(block, 3 * MIB, 1);
        let reserved = world.shared.pages.stats().reserved_pages;
        assert!(reserved > 0);
        world.os().plan(Some(Failure { nth_call: 0, errno: Errno::EXIST, for_good: false }));
        let mut blocks = std::vec![moved, wall];
        while world.os().n_calls() == 0 {
            blocks.push(heap.allocate(1 << PAGE_BYTES_LOG2, 1).start);
        }
        let after = world.shared.pages.stats();
        assert!(after.foreign_pages == 1 && after.reserved_pages < reserved);
        assert!(blocks.iter().all(|block| !block.is_null()));
        world.check().unwrap();
        blocks.into_iter().for_each(|block| heap.free(block));
    }
    world.check().unwrap();
}

/// Blocks of a MiB that are dirty; the heap that had them.
fn dirty_mib(world: &World, n: usize) -> Own<'_, freestone_os::fake::Fake> {
    let heap = world.heap();
    let blocks: Vec<_> = (0..n).map(|_| heap.allocate(MIB, 1).start).collect();
    // SAFETY: the heap and the blocks are this test's.
    unsafe { blocks.into_iter().for_each(|block| heap.free(block)) };
    heap
}

#[test]
fn one_call_gives_back_two_mebibytes_at_most_so_that_nobody_waits_long_for_it() {
    let world = World::new(4096);
    dirty_mib(&world, 10);
    assert_eq!(world.shared.pages.purge(), 10 * MIB);
    assert_eq!((dirty_bytes(&world), world.os().longest_purge_bytes()), (0, 2 * MIB));
    world.check().unwrap();
}

/// The purge stands inside the kernel all the while.
#[test]
fn a_fork_does_not_wait_for_a_purge() {
    let world = World::new(4096);
    dirty_mib(&world, 10);
    let pages = &world.shared.pages;
    world.os().hold_purges(true);
    std::thread::scope(|scope| {
        scope.spawn(|| pages.purge());
        while world.os().n_held_purges() == 0 {
            std::thread::yield_now();
        }
        pages.lock_for_fork();
        // SAFETY: taken in the line above.
        unsafe { pages.unlock_after_fork() };
        assert_eq!(pages.stats().purging_pages << PAGE_BYTES_LOG2, 2 * MIB as u64);
        world.os().hold_purges(false);
    });
    assert_eq!(dirty_bytes(&world), 0);
    world.check().unwrap();
}

#[test]
fn runs_that_the_parent_was_purging_are_dirty_in_a_forked_child() {
    let world = World::new(4096);
    let heap = dirty_mib(&world, 10);
    let pages = &world.shared.pages;
    {
        // What a thread that purges does before it drops the lock; it stays away, as in a child.
        let mut state = pages.state.lock();
        for n_pages in [16, 40] {
            let oldest = state.runs.oldest_dirty().unwrap();
            let _ = state.runs.begin_purge(Extent::new(oldest.first, Pages(n_pages)));
        }
        state.n_waiting = 3;
    }
    world.check().unwrap();
    assert_eq!(pages.stats().purging_pages, 56);
    pages.adopt_purging_in_child();
    world.check().unwrap();
    let stats = pages.stats();
    assert_eq!((stats.purging_pages, stats.dirty_pages), (0, 160));
    assert!(!heap.allocate(10 * MIB, 1).zero, "a part of it may not have been given back");
    assert_eq!(pages.purge(), 0);
}

/// 2 MiB are being given back, nothing is in use, and 63 of 64 MiB are wanted.
#[test]
fn who_is_within_the_limit_but_for_a_purge_waits_for_it() {
    let world = World::new(4096);
    world.set(key::LIMIT_HARD, "64m");
    dirty_mib(&world, 2);
    let pages = &world.shared.pages;
    world.os().hold_purges(true);
    std::thread::scope(|scope| {
        scope.spawn(|| pages.purge());
        while world.os().n_held_purges() == 0 {
            std::thread::yield_now();
        }
        let wanted = scope.spawn(|| pages.allocate(63 * 16 - 1, 1, Kind::Large).is_some());
        while pages.inspect(|state| state.n_waiting) == 0 && !wanted.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(pages.allocate(70 * 16, 1, Kind::Large).map(|run| run.page), None, "beyond the limit in any case");
        world.os().hold_purges(false);
        assert!(wanted.join().unwrap(), "refused with nothing in use");
    });
}

/// The kernel takes lazily purged memory when it likes: it is not dirty again and again.
#[test]
fn what_was_purged_lazily_does_not_make_every_free_a_call_of_the_kernel() {
    let world = World::new(4096);
    world.set(key::PURGE, "free");
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..60).map(|_| heap.allocate(MIB, 1).start).collect();
        blocks.into_iter().for_each(|block| heap.free(block));
        assert!(world.shared.pages.stats().stuck_pages > 0);
        world.os().plan(None);
        for _ in 0..100 {
            let blocks = [heap.allocate(3 * MIB, 1).start, heap.allocate(2 * MIB, 1).start];
            blocks.into_iter().for_each(|block| heap.free(block));
        }
        assert!(world.os().n_calls() < 20, "{} calls in 200 frees", world.os().n_calls());
    }
    world.check().unwrap();
}

#[test]
fn huge_pages_are_no_longer_asked_for_where_a_block_becomes_small_spans() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(8 * MIB, 1).start;
        assert_eq!(world.os().huge_bytes(), 8 * MIB);
        heap.free(block);
        assert_eq!((dirty_bytes(&world), world.os().huge_bytes()), (8 * MIB as u64, 8 * MIB));
        let small = loop {
            let small = heap.allocate(1000, 1).start;
            if (block..block.add(8 * MIB)).contains(&small) {
                break small;
            }
        };
        assert_eq!(world.os().huge_bytes(), 0, "a span at {small:?} would get huge pages");
    }
    world.check().unwrap();
}

/// What cannot be had even if all is given back.
#[test]
fn impossible_sizes_give_nothing_back() {
    let world = World::new(4096);
    world.set(key::LIMIT, "40m");
    world.set(key::LIMIT_HARD, "60m");
    let heap = dirty_mib(&world, 10);
    let block = heap.allocate(100, 1).start;
    let before = (dirty_bytes(&world), world.os().purged_bytes());
    world.os().plan(None);
    let window = crate::testing::WINDOW_BYTES;
    for (size, align) in [(usize::MAX, 1), (isize::MAX as usize, 1), (window, 1), (1, window), (1 << 45, 1)] {
        // SAFETY: the heap and the block are this test's.
        unsafe {
            assert!(heap.allocate(size, align).start.is_null() && heap.allocate(size, align).start.is_null());
            assert!(size == 1 || heap.reallocate(block, size, align).is_null());
        }
        assert!(!crate::thread::any_block::is_possible(&world.shared.pages, size, align));
    }
    assert_eq!(((dirty_bytes(&world), world.os().purged_bytes()), world.os().n_calls()), (before, 0));
    assert!(!world.shared.pages.is_pressed());
    world.check().unwrap();
}
