#![allow(unsafe_code)]
use super::*;
use crate::size_class::class_of;
use crate::testing::{World, fill, free, is_filled, reallocate, resize_in_place};
use freestone_os::Errno;
use freestone_os::fake::{Failure, Fake};

mod dirty_memory;

/// Bytes of the class of a block for `size` bytes.
fn class_bytes(size: usize) -> usize {
    block_bytes(class_of(size))
}

/// A block of `size` bytes that was moved to hold `next`, with what it held.
fn moved(heap: Own<'_, Fake>, size: usize, next: usize) -> *mut u8 {
    let block = heap.allocate(size, 1).start;
    fill(block, 7, size);
    let moved = reallocate(heap, block, next);
    assert!(moved != block && is_filled(moved, 7, size.min(next)), "{size} to {next}");
    moved
}

#[test]
fn a_small_block_that_grows_a_little_gets_what_is_asked_for_and_room_when_it_grows_again() {
    let world = World::new(4096);
    let heap = world.heap();
    for (size, next, expected, expected_then) in [
        (112, 113, class_bytes(113), class_bytes(2 * class_bytes(113))),
        (112, 223, class_bytes(223), class_bytes(2 * class_bytes(223))),
        (288, 289, class_bytes(289), class_bytes(2 * class_bytes(289))),
        // It doubles first.
        (288, 576, class_bytes(576), class_bytes(class_bytes(576) + 1)),
        (12_288, 12_289, class_bytes(12_289), class_bytes(2 * class_bytes(12_289))),
        // Twice as much would be a large block.
        (20_480, 20_481, class_bytes(20_481), SMALL_MAX),
    ] {
        let moved = moved(heap, size, next);
        assert_eq!(heap.usable_bytes(moved), Some(expected), "{size} to {next}");
        let again = reallocate(heap, moved, expected + 1);
        assert!(again != moved && is_filled(again, 7, size));
        assert_eq!(heap.usable_bytes(again), Some(expected_then), "{size} to {next}, and to {}", expected + 1);
        assert_eq!(reallocate(heap, again, expected + 2), again, "it keeps its room");
        free(heap, again);
    }
    world.check().unwrap();
}

/// A vector that is cut to its length, or text that was read into a buffer.
#[test]
fn a_small_block_of_which_less_than_three_quarters_are_left_moves() {
    let world = World::new(4096);
    let heap = world.heap();
    for (size, next) in [(128, 64), (1024, 520), (8192, 4200), (30_000, 16_000)] {
        let moved = moved(heap, size, next);
        assert_eq!(heap.usable_bytes(moved), Some(class_bytes(next)), "{size} to {next}");
        free(heap, moved);
    }
    world.check().unwrap();
}

#[test]
fn a_block_with_an_alignment_that_not_every_block_has_gets_what_is_asked_for() {
    let world = World::new(4096);
    let heap = world.heap();
    for (align, has_room) in [(GRANULE_BYTES, true), (64, false)] {
        let mut block = heap.allocate(112, align).start;
        for again in [false, true] {
            let usable = heap.usable_bytes(block).expect("the block is live");
            // SAFETY: the block is the test's, which uses what is returned in its place.
            block = unsafe { heap.reallocate(block, usable + 1, align) };
            let got = heap.usable_bytes(block).expect("the block is live");
            assert_eq!(got >= 2 * usable, again && has_room, "{align}: {usable} to {got}");
        }
        free(heap, block);
    }
}

#[test]
fn a_watched_block_that_grows_a_little_again_stays_at_its_next_growth() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    for (size, next, again, then) in [(100, 120, 140, 200), (600, 700, 800, 1300), (20_000, 21_000, 24_000, 31_000)] {
        let block = heap.allocate(size, 1).start;
        let moved = reallocate(heap, reallocate(heap, block, next), again);
        assert_ne!(moved, block, "{size}");
        assert_eq!(reallocate(heap, moved, again + 1), moved, "{size}: it keeps its room");
        assert_eq!(reallocate(heap, moved, then), moved, "{size}");
        free(heap, moved);
    }
    world.check().unwrap();
}

#[test]
fn a_small_buffer_that_grows_in_small_steps_moves_at_each_doubling_whether_or_not_it_is_watched() {
    for level in ["default", "checks"] {
        let world = World::hardened(4096, level);
        let heap = world.heap();
        let (mut block, mut n_moves) = (heap.allocate(100, 1).start, 0);
        for size in (108..20_000).step_by(8) {
            let moved = reallocate(heap, block, size);
            n_moves += u32::from(moved != block);
            block = moved;
        }
        assert!(n_moves <= 10, "{n_moves} moves, {level}");
        free(heap, block);
    }
}

#[test]
#[cfg_attr(miri, ignore = "fills all memory with small blocks")]
fn a_block_that_only_gets_smaller_is_resized_without_memory_too() {
    for level in ["default", "checks"] {
        let world = World::hardened(4096, level);
        let heap = world.heap();
        for (size, next) in [(1000, 16), (30_000, 100), (400_000, 100)] {
            let block = heap.allocate(size, 1).start;
            fill(block, 7, size);
            world.os().limit_committed(0);
            let others = [next, 2 * size].map(|bytes| {
                let blocks = std::iter::repeat_with(|| heap.allocate(bytes, 1).start);
                blocks.take_while(|block| !block.is_null()).collect::<std::vec::Vec<_>>()
            });
            let shrunk = reallocate(heap, block, next);
            assert!(!shrunk.is_null() && is_filled(shrunk, 7, next), "{size} to {next}, {level}");
            assert!(heap.usable_bytes(shrunk).is_some_and(|usable| usable >= next));
            assert!(reallocate(heap, shrunk, 2 * size).is_null(), "growing takes memory");
            world.os().limit_committed(usize::MAX);
            others.into_iter().flatten().chain([shrunk]).for_each(|block| free(heap, block));
        }
        world.check().unwrap();
    }
}

/// Grows one of a few watched large blocks while a call of the kernel fails, if one is to, and frees it: nothing is wrong with it. Returns whether it moved.
fn is_moved_and_whole(size: usize, larger: usize, failure: Option<Failure>) -> bool {
    let world = World::hardened(4096, "checks").ignoring_misuse();
    let heap = world.heap();
    let blocks = [(); 4].map(|()| heap.allocate(size, 1).start);
    fill(blocks[0], 7, size);
    world.os().plan(failure);
    let grown = reallocate(heap, blocks[0], larger);
    world.os().plan(None);
    assert!(!grown.is_null() && is_filled(grown, 7, size), "{failure:?}");
    free(heap, grown);
    assert_eq!(crate::misuse::seen::take(), [], "{failure:?}");
    blocks[1..].iter().for_each(|&block| free(heap, block));
    world.check().unwrap();
    grown != blocks[0]
}

/// The new block has the memory of the old one, which had other bytes where the canary of the new one begins.
#[test]
fn a_watched_large_block_whose_memory_moves_has_a_canary() {
    assert!(is_moved_and_whole(400_000, 7 * 65_536 - 12, None));
}

/// The attempt to move the memory empties the new block, whose canary was already written: here it lies where the old block's memory was to go.
#[test]
fn a_watched_large_block_whose_memory_does_not_move_has_a_canary() {
    for nth_call in 0..12 {
        let _ = is_moved_and_whole(262_100, 262_140, Some(Failure { nth_call, errno: Errno::INVAL, for_good: false }));
    }
}
