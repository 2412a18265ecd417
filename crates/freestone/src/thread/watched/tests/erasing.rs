//! The level `full`: freed blocks are cleared, and new ones zero.
use super::*;
use crate::testing;

/// A world of heaps of the level `full` that go on after a crime.
fn full() -> World {
    World::hardened(4096, "full").ignoring_misuse()
}

/// Whether all bytes of a block that is mapped are zero.
fn is_zero(block: *mut u8, size: usize) -> bool {
    testing::is_filled(block, 0, size)
}

fn fill_up(block: *mut u8, size: usize) {
    testing::fill(block, 0x5a, size);
}

#[test]
fn a_freed_block_and_a_new_one_are_zero_at_full() {
    let world = full();
    let heap = world.heap();
    let n = if cfg!(miri) { 4 } else { 40 };
    for size in SIZES.into_iter().chain([1 << 20]) {
        let blocks: Vec<_> = (0..n).map(|_| allocate(heap, size)).collect();
        for &block in &blocks {
            assert!(is_zero(block, size), "a new block of {size}");
            fill_up(block, size);
        }
        for &block in &blocks {
            free(heap, block);
            assert!(is_zero(block, size), "a freed block of {size}");
        }
        upkeep::flush_all(heap);
        // Of the same classes, and longer than what was there.
        let more = size + size / 16;
        let blocks: Vec<_> = (0..n).map(|_| allocate(heap, more)).collect();
        for &block in &blocks {
            assert!(is_zero(block, more), "a new block of {more}");
            free(heap, block);
        }
    }
    assert_eq!(crimes(), []);
}

#[test]
fn a_block_grows_into_zeros_at_full() {
    let world = full();
    let heap = world.heap();
    for (size, longer) in [(20, 28), (100, 108), (3000, 3060), (100_000, 131_000), (100_000, 400_000)] {
        let block = allocate(heap, longer);
        fill_up(block, longer);
        // SAFETY: only the block that is returned is used afterwards.
        let shrunk = unsafe { heap.reallocate(block, size, 1) };
        // SAFETY: as above.
        let grown = unsafe { heap.reallocate(shrunk, longer, 1) };
        assert!(is_zero(grown.wrapping_add(size), longer - size), "{size}");
        free(heap, grown);
    }
    assert_eq!(crimes(), []);
}

#[test]
fn a_write_to_any_byte_of_a_freed_small_block_is_found_at_full() {
    for size in [1, 28, 100, 1000, 4096] {
        for at in [0, size / 2, size - 1] {
            let world = full();
            let heap = world.heap();
            let block = allocate(heap, size);
            free(heap, block);
            write(block, at as isize, 1);
            upkeep::flush_all(heap);
            let expected = |what: &Misuse| matches!(what, Misuse::WriteAfterFree { offset, .. } if *offset == at);
            assert!(crimes().iter().any(expected), "{at} of {size}");
        }
    }
}
