#![allow(unsafe_code)]
use crate::page::tests::{MIB, dirty_bytes};
use crate::testing::{World, free};
use freestone_base::units::PAGE_BYTES_LOG2;
use std::vec::Vec;

const HUGE_BYTES: usize = 2 << 20;

#[test]
fn dense_large_blocks_get_huge_pages_and_the_request_is_withdrawn_with_the_memory() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    let heap = world.heap();
    let block = heap.allocate(9 * MIB, 1).start;
    assert_eq!(block.addr() % HUGE_BYTES, 0);
    assert_eq!(world.os().huge_bytes(), 10 * MIB, "the block is rounded up to whole huge pages");
    free(heap, block);
    world.shared.pages.purge();
    assert_eq!(world.os().huge_bytes(), 0);
    assert_eq!(heap.allocate(MIB, 1).start.addr() % (1 << PAGE_BYTES_LOG2), 0);
    assert_eq!(world.os().huge_bytes(), 0, "small ones get none");
    world.check().unwrap();
}

/// The fake kernel, like the real one, is only asked about whole OS pages.
#[test]
fn density_is_sampled_at_the_start_of_os_pages_of_any_size() {
    for os_page_log2 in 12..=PAGE_BYTES_LOG2 {
        let world = World::new(1 << os_page_log2);
        world.os().give_huge_pages(HUGE_BYTES);
        world.os().say_resident(false);
        let heap = world.heap();
        let block = heap.allocate(68 << PAGE_BYTES_LOG2, 1).start;
        assert_eq!(world.os().huge_bytes(), 2 * HUGE_BYTES);
        free(heap, block);
        world.shared.pages.purge();
        let _ = heap.allocate(68 << PAGE_BYTES_LOG2, 1);
        assert_eq!(world.os().huge_bytes(), 0, "it was found empty");
    }
}

/// The fake kernel says that nothing is resident: as if no block was ever written.
#[test]
fn programs_of_sparse_blocks_get_huge_pages_for_one_of_them() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    world.os().say_resident(false);
    let heap = world.heap();
    let blocks: Vec<_> = (0..4).map(|_| heap.allocate(8 * MIB, 1).start).collect();
    assert_eq!(world.os().huge_bytes(), 8 * MIB);
    blocks.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn the_request_for_huge_pages_is_withdrawn_where_a_block_becomes_small_spans() {
    let world = World::new(4096);
    world.os().give_huge_pages(HUGE_BYTES);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let block = heap.allocate(8 * MIB, 1).start;
        assert_eq!(world.os().huge_bytes(), 8 * MIB);
        free(heap, block);
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
