#![allow(unsafe_code)]
use super::begin_close;
use crate::config::{Harden, key};
use crate::misuse::{Misuse, seen};
use crate::page::page_heap::OwnedRun;
use crate::page::policy::held_back::BLOCKS_MOST;
use crate::page::runs::Extent;
use crate::page::tests::{MIB, take_run};
use crate::testing::{World, free, is_filled, reallocate};
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use freestone_base::units::{PAGE_BYTES, Pages};
use freestone_os::GuardBy;
use freestone_os::fake::Fake;
use std::vec::Vec;

const BLOCK: usize = 4 * PAGE_BYTES;

fn allocate(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    let block = heap.allocate(size, 1).start;
    assert!(!block.is_null(), "no memory for {size} bytes");
    block
}

/// Whether each page of a block faults.
fn is_closed(world: &World, block: *mut u8, size: usize) -> bool {
    (0..size).step_by(PAGE_BYTES).all(|at| world.os().is_guarded(block.wrapping_add(at)))
}

#[test]
fn a_freed_large_block_has_no_memory_and_cannot_be_accessed_at_full() {
    for (level, expected) in [("default", false), ("checks", false), ("full", true)] {
        let world = World::hardened(4096, level);
        let heap = world.heap();
        let before = world.shared.pages.limited_bytes();
        let block = allocate(heap, BLOCK);
        free(heap, block);
        assert_eq!(is_closed(&world, block, BLOCK), expected, "{level}");
        assert_eq!(world.shared.pages.state.lock().closing, Pages::ZERO, "nobody closes it any more");
        if expected {
            assert_eq!(world.shared.pages.limited_bytes(), before, "it counts against no limit");
            assert_ne!(allocate(heap, BLOCK), block, "its addresses wait");
        }
        world.check().unwrap();
    }
}

#[test]
fn a_block_comes_back_accessible_and_zero_after_enough_others_were_freed() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let first = allocate(heap, 4 * MIB);
    free(heap, first);
    // Without more in use, 64 MiB wait.
    let again = (0..40).find(|_| {
        let block = allocate(heap, 4 * MIB);
        assert!(!world.os().is_guarded(block));
        assert!(is_filled(block, 0, 4 * MIB));
        free(heap, block);
        block == first
    });
    assert!(again.is_some_and(|n| n >= 12), "{again:?}");
    world.check().unwrap();
}

#[test]
fn a_second_free_of_a_quarantined_block_is_reported() {
    let world = World::hardened(4096, "full");
    world.set(key::MISUSE, "report");
    let heap = world.heap();
    let block = allocate(heap, BLOCK);
    free(heap, block);
    free(heap, block);
    let found = seen::take();
    assert!(matches!(found[..], [(Misuse::DoubleFree { .. }, at)] if at == block.addr()), "{found:?}");
}

#[test]
fn a_block_that_moves_is_quarantined_where_it_was() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let block = allocate(heap, MIB);
    let _in_its_way = allocate(heap, BLOCK);
    let moved = reallocate(heap, block, 32 * MIB);
    assert_ne!(moved, block);
    assert!(is_closed(&world, block, MIB));
    free(heap, moved);
    world.check().unwrap();
}

/// More blocks than are held back are freed while the kernel opens none: those that find no place are freed as at other levels.
#[test]
fn blocks_that_cannot_be_opened_take_no_other_blocks_place_and_leave_once() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let short = PAGE_BYTES - 64;
    let blocks: Vec<_> = (0..BLOCKS_MOST + 20).map(|_| allocate(heap, short)).collect();
    world.os().refuse_to_open(true);
    blocks.iter().for_each(|&block| free(heap, block));
    let n_closed = blocks.iter().filter(|&&block| world.os().is_guarded(block)).count();
    world.os().refuse_to_open(false);
    for _ in 0..2 * BLOCKS_MOST {
        let kept = allocate(heap, short);
        free(heap, allocate(heap, short));
        world.check().unwrap();
        free(heap, kept);
    }
    assert_eq!(n_closed, BLOCKS_MOST);
}

#[test]
fn without_markers_blocks_are_closed_by_access_rights_and_without_either_they_are_freed_as_ever() {
    let world = World::hardened(4096, "full");
    world.os().refuse_markers();
    let heap = world.heap();
    let block = allocate(heap, BLOCK);
    free(heap, block);
    assert!(is_closed(&world, block, BLOCK) && world.os().guarded_bytes(GuardBy::Rights) >= BLOCK);
    let next = allocate(heap, BLOCK);
    world.os().limit_guarded_by_rights(world.os().guarded_bytes(GuardBy::Rights));
    free(heap, next);
    assert!(!world.os().is_guarded(next));
    world.check().unwrap();
    upkeep::flush_all(heap);
    let stats = world.shared.pages.stats();
    assert_eq!((stats.large_allocs, stats.large_frees), (2, 2), "that the kernel refused counts as nothing");
}

#[test]
fn what_is_cut_off_a_large_block_cannot_be_accessed_at_full() {
    for (level, expected) in [("checks", false), ("full", true)] {
        let world = World::hardened(4096, level);
        let heap = world.heap();
        let block = allocate(heap, 4 * BLOCK);
        // SAFETY: the block is this test's.
        unsafe { block.write(7) };
        let cut = reallocate(heap, block, BLOCK);
        assert_eq!(is_closed(&world, block.wrapping_add(2 * BLOCK), 2 * BLOCK), expected, "{level}");
        // SAFETY: the block is this test's, and longer than a byte.
        assert_eq!(unsafe { cut.read() }, 7);
        free(heap, cut);
        world.check().unwrap();
    }
}

#[test]
fn a_large_block_is_cut_where_it_is_when_there_is_no_memory_to_move_it() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let block = allocate(heap, 100 * MIB);
    world.set(key::LIMIT_HARD, "110m");
    assert_eq!(reallocate(heap, block, 90 * MIB), block);
    world.check().unwrap();
}

#[test]
fn the_large_blocks_of_a_heap_that_is_deleted_cannot_be_accessed_at_full() {
    let world = World::hardened(4096, "full");
    let _heap = world.heap();
    // SAFETY: what the heaps share is boxed and outlives the heap.
    let explicit = unsafe { world.threads.create_explicit(&world.shared, Harden::Full) }.unwrap();
    let block = allocate(explicit.enter().own(), BLOCK);
    // SAFETY: the heap and its blocks are not used afterwards.
    unsafe { world.threads.destroy(explicit) };
    assert!(is_closed(&world, block, BLOCK));
    world.check().unwrap();
}

#[test]
fn the_quarantine_gives_way_when_address_space_is_short() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    // The world has less than 220 MiB of pages: a third block fits only where the first was.
    let block = allocate(heap, 60 * MIB);
    let _others = allocate(heap, 110 * MIB);
    free(heap, block);
    assert!(world.os().is_guarded(block));
    let next = allocate(heap, 50 * MIB);
    assert!(!world.os().is_guarded(next) && next.addr().abs_diff(block.addr()) < 10 * MIB);
    world.check().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "takes 40,000 blocks")]
fn guards_give_way_to_spans_when_address_space_is_short() {
    let filled = |level| {
        let world = World::hardened(1024, level);
        let heap = world.heap();
        let blocks: Vec<_> =
            core::iter::from_fn(|| Some(heap.allocate(4000, 1).start)).take_while(|at| !at.is_null()).collect();
        assert!(blocks.iter().all(|block| !world.os().is_guarded(*block)), "{level}");
        world.check().unwrap();
        blocks.iter().for_each(|&block| free(heap, block));
        world.check().unwrap();
        blocks.len()
    };
    let (checks, full) = (filled("checks"), filled("full"));
    assert!(full * 100 >= checks * 97, "{full} blocks at full, {checks} at checks");
}

/// While it is in use, as much may wait as it has; afterwards 64 MiB.
#[test]
fn a_block_that_may_not_wait_once_it_is_free_is_free_at_once_and_forgotten() {
    let world = World::hardened(4096, "full");
    let pages = &world.shared.pages;
    let take = |n| take_run(&world, n);
    assert!(pages.quarantine(take(1100)).is_ok());
    assert!(pages.stats().clean_pages >= 1100 && pages.stats().guard_pages <= 1);
    // The first begins where the long one did.
    let [first, second] = [4, 4].map(take);
    let before = pages.stats().guard_pages;
    assert!(pages.quarantine(second).is_ok());
    assert_eq!(pages.stats().guard_pages, before + 4);
    assert!(pages.quarantine(first).is_ok());
    assert_eq!(pages.stats().guard_pages, before + 8);
    assert_eq!(pages.stats().large_pages, 0);
}

#[test]
fn guards_stay_as_long_as_quarantined_blocks_can_give_way() {
    let world = World::hardened(4096, "full");
    let heap = world.heap();
    let waiting = [30, 30].map(|n| allocate(heap, n * MIB));
    let other = allocate(heap, 110 * MIB);
    waiting.into_iter().for_each(|block| free(heap, block));
    // The world has less than 220 MiB of pages: it fits only where both were.
    let long = allocate(heap, 58 * MIB);
    assert!(long.addr().abs_diff(waiting[0].addr()) < 10 * MIB);
    assert!([0, PAGE_BYTES].iter().any(|behind| world.os().is_guarded(other.wrapping_add(110 * MIB + behind))));
    world.check().unwrap();
}

/// The child does not have the thread that was closing the block, and does not know whether it is closed.
#[test]
fn a_block_that_was_being_closed_at_a_fork_stays_quarantined_in_the_child() {
    for is_closed in [false, true] {
        let world = World::hardened(4096, "full");
        let (explicit, pages) = (world.explicit_heap(), &world.shared.pages);
        let blocks = [(); 2].map(|()| allocate(explicit.enter().own(), BLOCK - 16));
        let run = Extent::new(pages.view().page_of(blocks[0].addr()).unwrap(), Pages(4));
        let before = pages.state.lock().usage();
        // What a thread that frees the block does before it takes the lock again; it stays away, as in a child.
        begin_close(&mut pages.state.lock(), run);
        if is_closed {
            pages.close_block(&OwnedRun::taken(run), GuardBy::Marker).unwrap();
        }
        let usage = pages.state.lock().usage();
        assert_eq!(
            (usage.in_use, usage.purging),
            (before.in_use - Pages(4), Pages(4)),
            "memory until the kernel has it"
        );
        pages.adopt_purging_in_child(true);
        assert_eq!(pages.state.lock().usage().purging, Pages::ZERO);
        world.check().unwrap();
        world.destroy(explicit);
        world.check().unwrap();
        let stats = pages.stats();
        assert_eq!((stats.large_pages, stats.large_frees), (0, 2));
        let heap = world.heap();
        // Its addresses are lost, however many blocks come and go.
        let is_used = |_| {
            let other = allocate(heap, 4 * MIB - 16);
            free(heap, other);
            blocks[0] >= other && blocks[0] < other.wrapping_add(4 * MIB)
        };
        assert!(!(0..40).any(is_used));
    }
}

#[test]
fn a_block_that_the_kernel_does_not_close_is_freed_as_at_other_levels() {
    let world = World::hardened(4096, "full");
    world.os().refuse_markers();
    world.os().limit_guarded_by_rights(0);
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    for own in [heap, explicit.enter().own()] {
        let block = allocate(own, BLOCK - 16);
        free(own, block);
        world.check().unwrap();
    }
    upkeep::flush_all(heap);
    let stats = world.shared.pages.stats();
    assert_eq!((stats.large_pages, world.shared.pages.state.lock().closing), (0, Pages::ZERO));
    assert_eq!((stats.large_allocs, stats.large_frees), (2, 2));
}
