//! The rows of heaps.
use super::*;
use crate::testing::reallocate;
use crate::thread::heap::own::Own;

#[test]
fn a_heaps_row_adds_up_its_classes() {
    let world = World::new(4096);
    let heap = world.heap();
    let row = || heap_row(&world.shared, heap.heap(), None);
    let many = |n, size| -> Vec<_> { (0..n).map(|_| heap.allocate(size, 1).start).collect() };
    let (small, medium) = (many(300, 48), many(200, 1024));
    assert_eq!(row().n_allocations, 500, "{:?}", row());
    let before = row().cached;
    small.into_iter().take(10).chain(medium.into_iter().take(2)).for_each(|block| free(heap, block));
    assert_eq!(row().cached, before + 10 * 48 + 2 * 1024, "{:?}", row());
    upkeep::flush_all(heap);
    assert_eq!((row().n_frees, row().cached), (12, 0), "{:?}", row());
}

#[test]
fn a_heaps_row_has_what_its_large_run_cache_holds() {
    let world = World::new(4096);
    let heap = world.heap();
    (0..20).for_each(|_| free(heap, heap.allocate(100_000, 1).start));
    let row = heap_row(&world.shared, heap.heap(), None);
    assert_eq!((row.n_allocations, row.n_frees, row.cached), (20, 20, 2 * PAGE_BYTES as u64));
    let (puts, takes) = heap.cache().puts_and_takes();
    assert!(puts > takes && takes > 0);
}

/// Those that a thread's cache has, those that come from the page heap and go there, those in the quarantine, and those that are held back.
#[test]
fn a_heaps_row_counts_every_large_block() {
    for level in ["default", "checks", "full"] {
        let world = World::hardened(4096, level);
        let (heap, explicit) = (world.heap(), world.explicit_heap());
        let large = |own: Own<'_, _>, n: usize| -> Vec<_> { (0..n).map(|_| own.allocate(100_000, 1).start).collect() };
        let counts = || {
            let explicit = explicit.gated().heap();
            [heap.heap(), explicit].map(|heap| {
                let row = heap_row(&world.shared, heap, None);
                (row.n_allocations, row.n_frees)
            })
        };
        let (own, of_explicit) = (large(heap, 7), large(explicit.enter().own(), 4));
        assert_eq!(counts(), [(7, 0), (4, 0)], "{level}");
        own.into_iter().for_each(|block| free(heap, block));
        of_explicit.into_iter().for_each(|block| free(explicit.enter().own(), block));
        assert_eq!(counts(), [(7, 7), (4, 4)], "{level}");
        // Blocks that move, by whatever way.
        let block = reallocate(heap, heap.allocate(100_000, 1).start, 5 << 20);
        let _in_its_way = heap.allocate(100_000, 1);
        free(heap, reallocate(heap, block, 9 << 20));
        let [(n_allocations, n_frees), _] = counts();
        assert_eq!(n_allocations - n_frees, 1, "{level}");
        let left = large(explicit.enter().own(), 3);
        assert_eq!((left.len(), counts()[1]), (3, (7, 4)), "{level}");
        world.destroy(explicit);
        assert_eq!(counts()[1], (7, 7), "{level}: those that are deleted with it count as freed");
    }
}
