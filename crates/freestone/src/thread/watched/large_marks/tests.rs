use super::*;
use crate::misuse::seen;
use crate::testing::{World, fill, free, reallocate};
use crate::thread::upkeep;
use crate::thread::watched::request::Request;
use std::vec;
use std::vec::Vec;

fn world(level: &str) -> World {
    World::hardened(4096, level).ignoring_misuse()
}

fn page_of(world: &World, block: *mut u8) -> PageIndex {
    world.shared.pages.view().page_of(block.addr()).expect("the block is of this world")
}

fn write(block: *mut u8, at: usize, byte: u8) {
    fill(block.wrapping_add(at), byte, 1);
}

#[test]
fn what_was_asked_for_is_remembered_with_the_block() {
    let world = world("checks");
    let heap = world.heap();
    for size in [40_001, 65_536, 300_001, 1 << 24] {
        for align in [1, 64, 4096, 1 << 17] {
            for family in [Family::C, Family::Rust, Family::New, Family::NewArray] {
                let block = heap.allocate_for(Request::new(size, align, family)).start;
                let page = page_of(&world, block);
                let found = asked(heap, page);
                let expected = (size, align.trailing_zeros(), family);
                assert_eq!((found.size, found.align_log2, found.family), expected);
                let run_bytes = size.next_multiple_of(1 << 16);
                let (bytes, usable) = extent(&world.shared, page);
                assert!(is_watched(heap, page) && usable == size);
                assert!(bytes == run_bytes || bytes == run_bytes + (1 << 16), "{bytes}");
                free(heap, block);
            }
        }
    }
    assert_eq!(seen::take(), []);
}

#[test]
fn all_of_a_block_that_is_not_watched_is_the_programs() {
    let world = World::new(4096);
    let heap = world.heap();
    let block = heap.allocate(100_000, 1).start;
    let page = page_of(&world, block);
    assert!(!is_watched(heap, page));
    assert_eq!(extent(&world.shared, page), (2 << 16, 2 << 16));
}

/// Writes one byte of a freed large block, and what is reported when it leaves the quarantine.
fn seen_of(level: &str, size: usize, at: usize) -> Vec<(Option<usize>, usize)> {
    let world = world(level);
    let heap = world.heap();
    let block = heap.allocate(size, 1).start;
    free(heap, block);
    write(block, at, 0x41);
    upkeep::flush_all(heap);
    let crimes = seen::take().into_iter().map(|(what, address)| match what {
        Misuse::WriteAfterFree { size, offset, .. } if address == block.addr() => (size, offset),
        what => panic!("{what:?}"),
    });
    crimes.collect()
}

#[test]
fn a_write_to_a_freed_large_block_is_seen_at_its_ends_and_behind_them() {
    let size = 100_001;
    for at in [0, 17, size - 1] {
        let seen = seen_of("checks", size, at);
        assert!(matches!(seen[..], [(Some(of), offset)] if of == size && offset / 8 == at / 8), "{at}: {seen:?}");
    }
    for at in [size, size + 15] {
        assert_eq!(seen_of("checks", size, at), [(Some(size), at)]);
    }
}

#[test]
fn an_overflow_of_a_large_block_is_reported_once_until_its_memory_is_reused_or_it_moves() {
    let overflow = |block: *mut u8| {
        write(block, 100_001, 0x41);
        move |what: Misuse, address: usize| {
            matches!(what, Misuse::Overflow { offset: 100_001, .. }) && address == block.addr()
        }
    };
    for resized in [None, Some(400_000), Some(100)] {
        let world = world("checks");
        let heap = world.heap();
        let block = heap.allocate(100_001, 1).start;
        let is_overflow = overflow(block);
        match resized {
            None => free(heap, block),
            Some(size) => free(heap, reallocate(heap, block, size)),
        }
        upkeep::flush_all(heap);
        let crimes = seen::take();
        assert!(matches!(crimes[..], [(what, address)] if is_overflow(what, address)), "{resized:?}: {crimes:?}");
    }
}

#[test]
fn an_erased_block_is_looked_at_in_its_first_and_its_last_os_page() {
    for len in [0, 1, 100, 4096, 4097, 8192, 8193, 20_000] {
        let mut block = vec![0; len];
        assert_eq!(erased_damage(&block, 4096), None, "{len}");
        for at in (0..len).step_by(97).chain(len.checked_sub(1)) {
            block[at] = 1;
            let is_looked_at = at < 4096 || at >= len - 4096;
            assert_eq!(erased_damage(&block, 4096), is_looked_at.then_some(at), "{at} of {len}");
            block[at] = 0;
        }
    }
}

/// No allocation takes a large block out of the quarantine.
#[test]
fn large_blocks_that_have_waited_leave_with_the_free_of_another() {
    let world = world("checks");
    let heap = world.heap();
    let large = |bytes| free(heap, heap.allocate(bytes, 1).start);
    let waiting = || heap.watch().unwrap().quarantine().large().0;
    large(70_000);
    // Less than makes the others leave; each counts as 256 bytes.
    (0..520).for_each(|_| free(heap, heap.allocate(64, 1).start));
    assert_eq!(waiting(), 1);
    large(70_000);
    assert_eq!(waiting(), 1, "that which was freed just now");
    world.check().unwrap();
}

#[test]
fn a_heap_whose_large_blocks_are_freed_has_no_live_ones() {
    for level in ["checks", "full"] {
        let world = world(level);
        let heap = world.heap();
        // One that waits, one that is too long for that, and one whose memory moves.
        let blocks = [64, 70_000, 1 << 20, 1 << 20].map(|bytes| heap.allocate(bytes, 1).start);
        let moved = reallocate(heap, blocks[3], 40 << 20);
        assert_ne!(moved, blocks[3]);
        blocks[..3].iter().chain([&moved]).for_each(|&block| free(heap, block));
        assert!(heap.watch().unwrap().live().is_none(), "{level}");
    }
}
