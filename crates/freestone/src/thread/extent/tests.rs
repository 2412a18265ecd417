#![allow(unsafe_code)]
use super::*;
use crate::testing::World;

/// A world whose heaps are hardened as `level` says, and go on after a crime.
fn world(level: &str) -> World {
    World::hardened(4096, level).ignoring_misuse()
}

fn extent(world: &World, address: usize) -> Option<Extent> {
    find(&world.shared, &LargeHints::new(), address)
}

#[test]
fn every_byte_of_a_block_belongs_to_it_with_the_size_that_was_asked_for() {
    let world = world("full");
    let heap = world.heap();
    for size in [1, 8, 28, 100, 4096, 20_000, 100_000, 5 << 20] {
        let start = heap.allocate(size, 1).start.addr();
        let live = Some(Extent { start, size, state: BlockState::Live });
        for offset in [0, 1, size / 3, size / 2, size - 1, size] {
            assert_eq!(extent(&world, start + offset), live, "{offset} of {size}");
        }
    }
}

#[test]
fn a_block_of_an_unwatched_heap_has_all_of_its_class() {
    let world = world("default");
    let start = world.heap().allocate(100, 1).start.addr();
    assert_eq!(extent(&world, start + 50), Some(Extent { start, size: 112, state: BlockState::Live }));
}

#[test]
fn a_freed_block_is_free() {
    let world = world("full");
    let heap = world.heap();
    for size in [8, 4096, 100_000] {
        let block = heap.allocate(size, 1).start;
        // SAFETY: the block is not used afterwards.
        unsafe { heap.free(block) };
        let seen = extent(&world, block.addr() + size / 2);
        assert_eq!(seen, Some(Extent { start: block.addr(), size, state: BlockState::Free }));
    }
}

#[test]
fn a_block_whose_trailer_was_written_over_is_damaged() {
    let world = world("full");
    let block = world.heap().allocate(28, 1).start;
    // SAFETY: the trailer is behind the 28 bytes, in the block.
    unsafe { block.wrapping_add(28).cast::<u32>().write_unaligned(0x5a5a_5a5a) };
    assert_eq!(extent(&world, block.addr()).map(|extent| extent.state), Some(BlockState::Damaged));
}

#[test]
fn an_address_in_no_block_has_none() {
    let world = world("full");
    let heap = world.heap();
    let large = heap.allocate(100_000, 1).start.addr();
    assert_eq!(extent(&world, 16), None);
    assert_eq!(extent(&world, large + (1 << 30)), None);
    // Page 0 is never handed out.
    assert_eq!(extent(&world, world.shared.pages.layout().base.addr()), None);
}

#[test]
fn a_hint_that_is_not_true_any_more_is_not_believed() {
    let world = world("full");
    let heap = world.heap();
    let hints = LargeHints::new();
    let block = heap.allocate(5 << 20, 1).start;
    let inside = block.addr() + (4 << 20);
    assert_eq!(find(&world.shared, &hints, inside).map(|extent| extent.start), Some(block.addr()));
    // SAFETY: the block is not used afterwards.
    unsafe { heap.free(block) };
    assert_ne!(find(&world.shared, &hints, inside).map(|extent| extent.state), Some(BlockState::Live));
    let small: std::vec::Vec<_> = (0..3000).map(|_| heap.allocate(4096, 1).start.addr()).collect();
    let starts =
        small.iter().filter(|&&start| find(&world.shared, &hints, start).is_some_and(|seen| seen.start == start));
    assert_eq!(starts.count(), small.len());
}

/// Large blocks side by side, each asked about at every page.
#[test]
fn every_page_of_a_large_block_belongs_to_it_and_no_page_behind_it() {
    let world = world("full");
    let heap = world.heap();
    let hints = LargeHints::new();
    let sizes = [70_000, 5 << 20, 130_000, 40 << 20, 65_536];
    let starts = sizes.map(|size| heap.allocate(size, 1).start.addr());
    // Forwards, and backwards, when hints of other blocks are where this block's would be.
    for _ in 0..2 {
        for (start, size) in starts.into_iter().zip(sizes).rev() {
            for offset in (0..size).step_by(60_000).chain([size - 1]) {
                let live = Some(Extent { start, size, state: BlockState::Live });
                assert_eq!(find(&world.shared, &hints, start + offset), live, "{offset} of {size}");
            }
        }
    }
    let (last, size) = (starts[3], sizes[3]);
    // SAFETY: the block is not used afterwards.
    unsafe { heap.free(core::ptr::with_exposed_provenance_mut(last)) };
    world.shared.pages.purge();
    let seen = find(&world.shared, &hints, last + size / 2);
    assert_ne!(seen.map(|extent| extent.state), Some(BlockState::Live), "{seen:?}");
}

/// A hint is only of use if it is kept: the page map is not searched again.
#[test]
fn a_block_that_was_found_by_a_search_is_found_by_its_hint_from_every_page_asked_for() {
    let world = world("full");
    let start = world.heap().allocate(40 << 20, 1).start.addr();
    let hints = LargeHints::new();
    let known = || hints.0.iter().filter(|hint| hint.load(Ordering::Relaxed) != 0).count();
    for at in 1..=100 {
        assert_eq!(find(&world.shared, &hints, start + at * 65_536).map(|extent| extent.start), Some(start));
        assert_eq!(known(), at, "a hint for each page");
    }
}

#[test]
fn a_block_with_a_damaged_trailer_has_all_bytes_before_it() {
    let world = world("full");
    let block = world.heap().allocate(28, 1).start;
    // SAFETY: the trailer is behind the 28 bytes, in the block.
    unsafe { block.wrapping_add(28).cast::<u32>().write_unaligned(0x5a5a_5a5a) };
    let seen = extent(&world, block.addr() + 1).expect("it is in a block");
    assert_eq!(seen.start, block.addr());
    assert!((28..36).contains(&seen.size), "{seen:?}");
}
