#![allow(unsafe_code)]

use super::*;
use crate::config::key;
use crate::page::tests::{MIB, take_run};
use crate::span::Kind;
use crate::testing::{World, fill, free, is_filled, reallocate};
use freestone_base::sync::Ordering;
use freestone_os::Errno;
use freestone_os::fake::Failure;

/// The first call that a moving `realloc` makes is the move. The kernel unmaps the target and then refuses to move.
#[test]
fn a_block_whose_move_fails_when_its_target_is_unmapped_moves_elsewhere_with_its_contents() {
    for errno in [Errno::NOMEM, Errno::EXIST] {
        for for_good in [false, true] {
            let world = World::hardened(4096, "off");
            let heap = world.heap();
            // As if the control group's limit had been read.
            world.shared.pages.group_asked.store(true, Ordering::Relaxed);
            let (block, wall) = (heap.allocate(MIB, 1).start, heap.allocate(MIB, 1).start);
            fill(block, 9, MIB);
            let room = heap.allocate(40 * MIB, 1).start;
            free(heap, room);
            world.shared.pages.purge();
            world.os().plan_half_way(Failure { nth_call: 0, errno, for_good });
            let moved = reallocate(heap, block, 3 * MIB);
            world.os().plan(None);
            assert!(!moved.is_null() || for_good);
            let lost = world.shared.pages.stats();
            assert_eq!(
                (lost.reserved_pages, lost.foreign_pages),
                if errno == Errno::NOMEM { (16, 0) } else { (0, 16) }
            );
            let kept = if moved.is_null() { block } else { moved };
            assert!(is_filled(kept, 9, MIB), "{errno:?}: lost");
            assert!(world.os().is_untouched_outside(), "{errno:?}: memory that is not mapped was written");
            world.check().unwrap();
            [kept, wall].into_iter().for_each(|block| free(heap, block));
            world.check().unwrap();
            world.end(heap);
            world.shared.usage.publish_live(1 << 40);
            assert_eq!(world.shared.usage.peak_live_bytes(), 1 << 40, "nothing counts as live any more");
        }
    }
}

#[test]
fn memory_moves_to_a_block_that_is_at_least_as_long_and_in_no_sandbox() {
    for (to, sandbox, expected) in
        [(10, "off", Moved::Yes), (11, "off", Moved::Yes), (9, "off", Moved::No), (10, "on", Moved::No)]
    {
        let world = World::hardened(4096, "off");
        world.set(key::SANDBOX, sandbox);
        let [from, to] = [10, to].map(|n| take_run(&world, n));
        let (page, n_to) = (from.page(), world.shared.pages.extent(&to).pages.0);
        let start = world.shared.pages.start(world.shared.pages.extent(&to));
        fill(world.shared.pages.start(world.shared.pages.extent(&from)), 9, 9 << 16);
        world.os().plan(None);
        assert_eq!(world.shared.pages.relocate(from, to), expected, "to {n_to} pages");
        let stats = world.shared.pages.stats();
        let is_moved = expected == Moved::Yes;
        assert_eq!(stats.large_pages, u64::from(n_to) + if is_moved { 0 } else { 10 });
        assert_eq!(is_filled(start, 9, 9 << 16), is_moved);
        let kind = world.shared.pages.inspect(|state| state.runs.record(page).kind.get());
        assert_eq!(kind, if is_moved { Kind::Clean } else { Kind::Large });
        world.check().unwrap();
    }
}

#[test]
fn the_request_for_huge_pages_is_withdrawn_where_the_memory_has_moved_away() {
    for is_refused in [false, true] {
        let world = World::hardened(4096, "off");
        world.give_huge_pages(2 << 20);
        let [from, to] = [64, 128].map(|n| take_run(&world, n));
        let page = from.page();
        assert_eq!(world.os().huge_bytes(), 8 * MIB);
        let plan = Failure { nth_call: 1, errno: Errno::NOMEM, for_good: false };
        world.os().plan(is_refused.then_some(plan));
        assert_eq!(world.shared.pages.relocate(from, to), Moved::Yes);
        // The new block has the request that the old one had, and its own behind that.
        assert_eq!(world.os().huge_bytes(), if is_refused { 6 * MIB } else { 4 * MIB });
        // The run that the block became a part of: free pages may lie before it.
        let is_huge = world.shared.pages.inspect(|state| {
            let (_, run) = state.runs.iter().find(|(run, _)| page < run.end()).expect("it is in a run");
            run.is_huge.get()
        });
        assert_eq!(is_huge, is_refused);
        world.check().unwrap();
    }
}

/// The kernel moves the request with the memory. In memory that was dirty there was none before.
#[test]
fn a_request_for_huge_pages_that_moved_is_withdrawn_when_the_block_goes_back() {
    let world = World::hardened(4096, "off");
    let to = take_run(&world, 128);
    world.give_huge_pages(2 << 20);
    let from = take_run(&world, 64);
    assert_eq!(world.os().huge_bytes(), 2 * MIB);
    let page = to.page();
    assert_eq!(world.shared.pages.relocate(from, to), Moved::Yes);
    assert_eq!(world.os().huge_bytes(), 2 * MIB, "it is at the new place");
    // SAFETY: the run is this test's, and was moved to.
    let to = unsafe { OwnedRun::at(page) };
    world.shared.pages.free(to);
    world.shared.pages.purge();
    assert_eq!(world.os().huge_bytes(), 0);
    world.check().unwrap();
}

#[test]
fn a_target_that_was_mapped_anew_for_a_move_that_failed_has_the_huge_pages_that_the_option_asks_for() {
    let world = World::hardened(4096, "off");
    world.set(key::THP, "on");
    let [from, to] = [10, 12].map(|n| take_run(&world, n));
    let huge_bytes = world.os().huge_bytes();
    world.os().plan(Some(Failure { nth_call: 0, errno: Errno::NOMEM, for_good: false }));
    assert_eq!(world.shared.pages.relocate(from, to), Moved::No);
    assert_eq!(world.os().huge_bytes(), huge_bytes);
    world.check().unwrap();
}
