#![allow(unsafe_code)]
use crate::config::key;
use crate::page::tests::{MIB, dirty_bytes, dirty_mib, while_a_purge_is_held, while_held};
use crate::span::Kind;
use crate::testing::{World, free, reallocate};
use crate::thread::upkeep;
use freestone_base::units::Pages;
use freestone_os::Errno;
use freestone_os::fake::Failure;
use std::vec::Vec;

#[test]
fn the_soft_limit_purges_first_and_then_asks_for_room_and_the_hard_one_refuses() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.set(key::LIMIT, "40m");
    world.set(key::LIMIT_HARD, "60m");
    let (heap, pages) = (world.heap(), &world.shared.pages);
    let mut blocks: Vec<_> = (0..3).map(|_| heap.allocate(10 * MIB, 1).start).collect();
    free(heap, blocks.remove(0));
    // 20 in use, 10 dirty: 15 more fit if half of the dirty ones go.
    blocks.push(heap.allocate(15 * MIB, 1).start);
    assert!(dirty_bytes(&world) <= 5 * MIB as u64 && !pages.is_pressed());
    blocks.push(heap.allocate(10 * MIB, 1).start);
    assert!(pages.is_pressed(), "45 of 40 MiB are in use");
    pages.relieved();
    blocks.push(heap.allocate(70_000, 1).start);
    assert!(!pages.is_pressed(), "it was reported, and little has changed");
    assert!(heap.allocate(20 * MIB, 1).start.is_null(), "that would be 65 of 60 MiB");
    assert!(reallocate(heap, blocks[0], 30 * MIB).is_null());
    blocks.push(heap.allocate(10 * MIB, 1).start);
    assert!(!blocks.contains(&core::ptr::null_mut()));
    blocks.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

/// Bursts that follow each other take the dirty memory that the one before has left.
#[test]
fn each_burst_beyond_the_soft_limit_asks_for_room() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.set(key::LIMIT, "40m");
    let (heap, pages) = (world.heap(), &world.shared.pages);
    for burst in 0..3 {
        let blocks: Vec<_> = (0..3).map(|_| heap.allocate(10 * MIB, 1).start).collect();
        assert!(!pages.is_pressed(), "30 of 40 MiB in burst {burst}");
        let more: Vec<_> = (0..2).map(|_| heap.allocate(10 * MIB, 1).start).collect();
        assert!(pages.is_pressed(), "50 of 40 MiB in burst {burst}");
        pages.relieved();
        let same = heap.allocate(70_000, 1).start;
        assert!(!pages.is_pressed(), "it was reported, and little has changed");
        blocks.into_iter().chain(more).chain([same]).for_each(|block| free(heap, block));
    }
    world.check().unwrap();
}

#[test]
fn memory_that_the_kernel_keeps_is_unmapped_where_it_would_pass_a_limit() {
    for (limit, refuses) in [(key::LIMIT, false), (key::LIMIT_HARD, true)] {
        let world = World::new(4096);
        world.set(key::PURGE, "free");
        world.set(limit, "20m");
        let heap = world.heap();
        for size in (1..18).map(|n| n * MIB) {
            let block = heap.allocate(size, 1).start;
            assert!(!block.is_null(), "{size} bytes");
            let counted = world.shared.pages.limited_bytes();
            assert!(counted <= 20 * MIB, "{counted} bytes with a block of {size}");
            free(heap, block);
            world.check().unwrap();
        }
        assert_eq!(heap.allocate(21 * MIB, 1).start.is_null(), refuses);
    }
}

#[test]
fn free_memory_gives_way_to_a_lower_limit() {
    let world = World::new(4096);
    let (heap, pages) = (world.heap(), &world.shared.pages);
    let (kept, freed) = (heap.allocate(2 * MIB, 1).start, heap.allocate(10 * MIB, 1).start);
    pages.spend_early_purges();
    free(heap, freed);
    for limit in [key::LIMIT, key::LIMIT_HARD] {
        assert!(pages.set_limit(limit, MIB).is_err(), "more is in use");
        assert_eq!(pages.set_limit(limit, 4 * MIB), Ok(()));
    }
    free(heap, kept);
    world.check().unwrap();
}

#[test]
fn an_explicit_heap_has_no_more_than_its_limit() {
    let world = World::new(4096);
    let explicit = world.explicit_heap();
    explicit.set_limit(Some(32)).unwrap();
    let entered = explicit.enter();
    let heap = entered.own();
    let large = heap.allocate(MIB, 1).start;
    assert!(!large.is_null());
    assert!(reallocate(heap, large, 3 * MIB).is_null(), "growing counts as well");
    let small: Vec<_> =
        (0..10_000).map(|_| heap.allocate(1000, 1).start).take_while(|block| !block.is_null()).collect();
    assert!((900..1100).contains(&small.len()), "{} blocks of 1000 bytes in 1 MiB", small.len());
    small.into_iter().for_each(|block| free(heap, block));
    upkeep::flush_all(heap);
    free(heap, large);
    assert!(!heap.allocate(MIB + MIB / 2, 1).start.is_null(), "what was freed does not count");
    drop(entered);
    world.destroy(explicit);
    world.check().unwrap();
}

/// A block of 86 pages would end with its third huge page, and have 96.
#[test]
fn huge_pages_add_nothing_beyond_an_explicit_heaps_limit() {
    let bytes = |n_pages: usize| n_pages << 16;
    for (limit, first, grown) in [(96, bytes(96), bytes(96)), (90, bytes(86), bytes(90))] {
        let world = World::new(4096);
        world.os().give_huge_pages(2 * MIB);
        let explicit = world.explicit_heap();
        explicit.set_limit(Some(limit)).unwrap();
        let entered = explicit.enter();
        let heap = entered.own();
        let large = heap.allocate(bytes(86), 1).start;
        assert_eq!(heap.usable_bytes(large), Some(first), "limit of {limit} pages");
        // SAFETY: the block is the test's.
        assert!(unsafe { heap.resize_in_place(large, bytes(90)) });
        assert_eq!(heap.usable_bytes(large), Some(grown), "limit of {limit} pages");
        free(heap, large);
        drop(entered);
        world.destroy(explicit);
        world.check().unwrap();
    }
}

/// 2 MiB are being given back, nothing is in use, and 63 of 64 MiB are wanted.
#[test]
fn an_allocation_that_fits_once_a_purge_has_ended_waits_for_it() {
    let world = World::hardened(4096, "off");
    world.set(key::LIMIT_HARD, "64m");
    dirty_mib(&world, 2);
    let pages = &world.shared.pages;
    while_a_purge_is_held(&world, |scope| {
        let wanted = scope.spawn(|| pages.allocate(Pages(63 * 16 - 1), Pages(1), Kind::Large).is_some());
        while pages.inspect(|state| state.n_waiting) == 0 && !wanted.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(
            pages.allocate(Pages(70 * 16), Pages(1), Kind::Large).map(|run| run.page),
            None,
            "beyond the limit in any case"
        );
        world.os().hold_slow_calls(false);
        assert!(wanted.join().unwrap(), "refused with nothing in use");
        assert_eq!(pages.inspect(|state| state.n_waiting), 0);
    });
}

/// The thread that purges may be the one that waits, interrupted by a signal.
#[test]
fn an_allocation_that_waits_for_a_purge_gives_up_after_a_second() {
    let world = World::hardened(4096, "off");
    world.set(key::LIMIT_HARD, "64m");
    dirty_mib(&world, 2);
    let pages = &world.shared.pages;
    while_a_purge_is_held(&world, |scope| {
        let wanted = scope.spawn(|| pages.allocate(Pages(63 * 16), Pages(1), Kind::Large).is_some());
        while pages.inspect(|state| state.n_waiting) == 0 {
            std::thread::yield_now();
        }
        world.os().advance_ms(1000);
        assert!(!wanted.join().unwrap());
        assert_eq!(pages.inspect(|state| state.n_waiting), 0);
    });
    world.check().unwrap();
}

/// Files may be slow to read, and other threads allocate meanwhile.
#[test]
fn the_control_groups_limit_is_read_while_the_lock_is_free() {
    let world = World::new(4096);
    world.os().limit_group_bytes(160 * MIB as u64);
    let pages = &world.shared.pages;
    let allocate = |mib: u32| pages.allocate(Pages(mib * 16), Pages(1), Kind::Large);
    assert!(allocate(33).is_some());
    assert_eq!(pages.settings.limit_bytes(), None, "small processes do not pay for it");
    while_held(
        &world,
        || assert!(allocate(1).is_some()),
        |_| {
            assert!(pages.state.try_lock().is_some(), "the page lock is held while the limit is read");
            assert!(allocate(1).is_some(), "another thread neither waits nor asks again");
            assert_eq!(pages.settings.limit_bytes(), None);
        },
    );
    assert_eq!(pages.settings.limit_bytes(), Some(150 * MIB));
}

#[test]
fn a_control_groups_limit_that_cannot_be_read_now_is_read_at_the_next_expansion() {
    let world = World::new(4096);
    world.os().limit_group_bytes(160 * MIB as u64);
    let pages = &world.shared.pages;
    let allocate = |mib: u32| assert!(pages.allocate(Pages(mib * 16), Pages(1), Kind::Large).is_some());
    allocate(33);
    world.os().plan(Some(Failure { nth_call: 0, errno: Errno::AGAIN, for_good: false }));
    for limit in [None, Some(150 * MIB)] {
        allocate(1);
        assert_eq!(pages.settings.limit_bytes(), limit);
    }
}

/// Sizes that do not fit even if all memory is given back.
#[test]
fn impossible_sizes_purge_nothing() {
    let world = World::new(4096);
    world.set(key::LIMIT, "40m");
    world.set(key::LIMIT_HARD, "60m");
    let heap = dirty_mib(&world, 10);
    let block = heap.allocate(100, 1).start;
    let before = (dirty_bytes(&world), world.os().purged_bytes());
    world.os().plan(None);
    let range_bytes = crate::testing::RANGE_BYTES;
    for (size, align) in [(usize::MAX, 1), (isize::MAX as usize, 1), (range_bytes, 1), (1, range_bytes), (1 << 45, 1)] {
        // SAFETY: the heap and the block are this test's.
        unsafe {
            assert!(heap.allocate(size, align).start.is_null() && heap.allocate(size, align).start.is_null());
            assert!(size == 1 || heap.reallocate(block, size, align).is_null());
        }
    }
    assert_eq!(((dirty_bytes(&world), world.os().purged_bytes()), world.os().n_calls()), (before, 0));
    assert!(!world.shared.pages.is_pressed());
    world.check().unwrap();
}

#[test]
fn what_is_allocated_beside_the_pages_counts_against_the_limits() {
    let world = World::new(4096);
    world.set(key::LIMIT_HARD, "40m");
    let (heap, pages) = (world.heap(), &world.shared.pages);
    pages.add_beside(30 * MIB);
    assert!(heap.allocate(20 * MIB, 1).start.is_null());
    let block = heap.allocate(5 * MIB, 1).start;
    assert!(!block.is_null());
    pages.sub_beside(30 * MIB);
    free(heap, block);
    let block = heap.allocate(20 * MIB, 1).start;
    assert!(!block.is_null());
    free(heap, block);
}
