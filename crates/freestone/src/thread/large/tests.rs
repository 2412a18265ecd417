use crate::config::key;
use crate::testing::{World, fill, free, is_filled, reallocate};
use freestone_base::units::PAGE_BYTES_LOG2;
use std::vec::Vec;

#[test]
fn calloc_is_zero_whatever_purging_did() {
    for keeps_contents in [false, true] {
        let world = World::new(4096);
        if keeps_contents {
            world.os().keep_contents_on_purge();
        }
        let heap = world.heap();
        for size in [70_000, 1 << 20, 5 << 20] {
            let block = heap.allocate(size, 1).start;
            fill(block, 0xA5, size);
            free(heap, block);
            world.shared.pages.purge();
            let again = heap.allocate(size, 1);
            if again.zero {
                assert!(is_filled(again.start, 0, size), "memory said to be zero is not");
            }
            free(heap, again.start);
        }
        world.check().unwrap();
    }
}

#[test]
fn dirty_memory_is_bounded_by_amount_and_by_age() {
    let world = World::new(4096);
    world.spend_early_purges();
    let heap = world.heap();
    let mebibyte = 1 << 20;
    let blocks: Vec<_> = (0..40).map(|_| heap.allocate(mebibyte, 1).start).collect();
    assert_eq!(world.os().purged_bytes(), 0);
    blocks.into_iter().for_each(|block| free(heap, block));
    let dirty = world.shared.pages.stats().dirty_pages << PAGE_BYTES_LOG2;
    assert!(dirty <= (16 + 4) << 20, "{dirty} bytes are dirty, more than the bound and what may be listed beside it");
    assert!(world.os().purged_bytes() >= 20 << 20);
    world.os().advance_ms(2000);
    free(heap, heap.allocate(mebibyte, 1).start);
    let dirty = world.shared.pages.stats().dirty_pages << PAGE_BYTES_LOG2;
    assert!(dirty <= mebibyte as u64, "{dirty} bytes are older than the decay time and still dirty");
    world.check().unwrap();
}

#[test]
fn large_blocks_grow_where_they_are_when_there_is_room_and_give_their_tail_back() {
    let world = World::new(4096);
    let heap = world.heap();
    let block = heap.allocate(200_000, 1).start;
    let mut size = 200_000;
    for _ in 0..20 {
        size += size / 8;
        assert_eq!(reallocate(heap, block, size), block, "moved at {size}");
    }
    assert_eq!(reallocate(heap, block, 100_000), block);
    assert_eq!(heap.usable_bytes(block), Some(2 * 65536));
    let small = reallocate(heap, block, 100);
    assert_ne!(small, block);
    free(heap, small);
    world.check().unwrap();
}

/// Something is in the way behind the block: its memory moves, its contents stay, and what it leaves is clean.
#[test]
fn a_large_block_that_cannot_grow_in_place_moves_without_copying() {
    let world = World::new(4096);
    let heap = world.heap();
    let size = 1 << 20;
    let block = heap.allocate(size, 1).start;
    let wall = heap.allocate(size, 1).start;
    fill(block, 9, size);
    let moved = reallocate(heap, block, 3 * size);
    assert_ne!(moved, block);
    assert!(is_filled(moved, 9, size));
    let again = heap.allocate(size, 1);
    if again.start == block {
        assert!(again.zero && is_filled(block, 0, size));
    }
    [moved, wall, again.start].into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn no_cache_of_a_thread_takes_the_run_of_an_explicit_heap() {
    let world = World::new(4096);
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    let size = 200_000;
    let block = explicit.enter().own().allocate(size, 1).start;
    for _ in 0..40 {
        free(heap, heap.allocate(size, 1).start);
    }
    assert_ne!(heap.cache().cached_pages(), 0);
    // The cache has room for a block of this length.
    let cached = heap.allocate(size, 1).start;
    assert_eq!(heap.cache().cached_pages(), 0);
    free(heap, block);
    assert_eq!(heap.cache().cached_pages(), 0);
    assert_eq!(explicit.holdings().large_and_limit(&world.shared.pages).0, 0, "the heap has it no more");
    free(heap, cached);
    assert_ne!(heap.cache().cached_pages(), 0);
    world.destroy(explicit);
    world.check().unwrap();
}

/// No call of it takes the page heap's lock but to look for that.
#[test]
fn a_program_whose_blocks_come_from_its_cache_gives_back_what_has_expired() {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.spend_early_purges();
    let heap = world.heap();
    let other = heap.allocate(8 << 20, 1).start;
    let come_and_go = || (0..50).for_each(|_| free(heap, heap.allocate(300_000, 1).start));
    come_and_go();
    assert!(heap.cache().cached_pages() > 0);
    free(heap, other);
    let before = world.os().purged_bytes();
    world.os().advance_ms(5000);
    come_and_go();
    assert!(world.os().purged_bytes() - before >= 8 << 20);
    world.check().unwrap();
}
