#![allow(unsafe_code)]
use crate::testing::World;
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
            // SAFETY: the heap and the blocks are this test's.
            unsafe {
                let block = heap.allocate(size, 1).start;
                block.write_bytes(0xA5, size);
                heap.free(block);
                world.shared.pages.purge();
                let again = heap.allocate(size, 1);
                if again.zero {
                    let bytes = core::slice::from_raw_parts(again.start, size);
                    assert!(bytes.iter().all(|&byte| byte == 0), "memory said to be zero is not");
                }
                heap.free(again.start);
            }
        }
        world.check().unwrap();
    }
}

#[test]
fn dirty_memory_is_bounded_by_amount_and_by_age() {
    let world = World::new(4096);
    let heap = world.heap();
    let mebibyte = 1 << 20;
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..40).map(|_| heap.allocate(mebibyte, 1).start).collect();
        assert_eq!(world.os().purged_bytes(), 0);
        blocks.into_iter().for_each(|block| heap.free(block));
        let dirty = world.shared.pages.stats().dirty_pages << PAGE_BYTES_LOG2;
        assert!(dirty <= 16 << 20, "{dirty} bytes are dirty, more than the bound");
        assert!(world.os().purged_bytes() >= 20 << 20);
        world.os().advance_ms(2000);
        heap.free(heap.allocate(mebibyte, 1).start);
        let dirty = world.shared.pages.stats().dirty_pages << PAGE_BYTES_LOG2;
        assert!(dirty <= mebibyte as u64, "{dirty} bytes are older than the decay time and still dirty");
    }
    world.check().unwrap();
}

#[test]
fn large_blocks_grow_where_they_are_when_there_is_room_and_give_their_tail_back() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(200_000, 1).start;
        let mut size = 200_000;
        for _ in 0..20 {
            size += size / 8;
            assert_eq!(heap.reallocate(block, size, 1), block, "moved at {size}");
        }
        assert_eq!(heap.reallocate(block, 100_000, 1), block);
        assert_eq!(heap.usable_bytes(block), Some(2 * 65536));
        let small = heap.reallocate(block, 100, 1);
        assert_ne!(small, block);
        heap.free(small);
    }
    world.check().unwrap();
}

/// Something is in the way behind the block: its memory moves, its contents stay, and what it leaves is clean.
#[test]
fn a_large_block_that_cannot_grow_in_place_moves_without_copying() {
    let world = World::new(4096);
    let heap = world.heap();
    let size = 1 << 20;
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(size, 1).start;
        let wall = heap.allocate(size, 1).start;
        block.write_bytes(9, size);
        let moved = heap.reallocate(block, 3 * size, 1);
        assert_ne!(moved, block);
        assert!(core::slice::from_raw_parts(moved, size).iter().all(|&byte| byte == 9));
        let again = heap.allocate(size, 1);
        if again.start == block {
            assert!(again.zero && core::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0));
        }
        [moved, wall, again.start].into_iter().for_each(|block| heap.free(block));
    }
    world.check().unwrap();
}
