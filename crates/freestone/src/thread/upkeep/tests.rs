#![allow(unsafe_code)]
use crate::testing::World;
use std::vec::Vec;

#[test]
fn caches_that_nobody_uses_go_home_at_the_decay_tick_and_their_memory_after_another() {
    let world = World::new(4096);
    let heap = world.heap();
    // SAFETY: the heap and the blocks are this test's.
    unsafe {
        let blocks: Vec<_> = (0..5000).map(|i| heap.allocate(16 + i % 900, 1).start).collect();
        blocks.into_iter().for_each(|block| heap.free(block));
        for _ in 0..2 {
            world.os().advance_ms(1500);
            heap.free(heap.allocate(1 << 20, 1).start);
            world.check().unwrap();
        }
        let pages = world.shared.pages.stats();
        // Current spans stay, and the block just freed, with what it was joined to.
        assert!((0..crate::size_class::N_CLASSES).all(|class| heap.bins().len(class) == 0));
        assert!(pages.dirty_pages <= 32, "{} pages are still dirty", pages.dirty_pages);
    }
}
