//! Lists and blocks of several lengths.
use super::*;

/// The bar is one acquisition of the lock in 20 operations, of the longer ones with many threads only: so few blocks leave one or two runs of each length. An
/// allocation that takes the lock is one that the page heap counts.
#[test]
fn blocks_of_many_lengths_that_come_and_go_seldom_need_the_page_heap() {
    for (least, most_bytes, pages, one_in) in [(40_000, 200_000, 230, 20), (1 << 18, 1 << 20, 1050, 5)] {
        let (n, n_asked) = come_and_go(least, most_bytes, pages);
        assert!(cfg!(miri) || n_asked < n / one_in, "{n_asked} of {n} blocks came from the page heap");
    }
}

/// Replaces a hundred blocks of two heaps, which have about `live` pages, at random. Returns how often, and how many came from the page heap.
fn come_and_go(least: usize, most_bytes: usize, live: u64) -> (u64, u64) {
    let world = World::new(4096);
    world.set(key::DECAY_MS, "4294967295");
    let (heaps, mut random) = ([world.heap(), world.heap()], SplitMix(7));
    let bytes = |random: &mut SplitMix| least + random.below(most_bytes - least);
    let mut slots: Vec<_> = (0..100).map(|n| heaps[n % 2].allocate(bytes(&mut random), 1).start).collect();
    let n = if cfg!(miri) { 50 } else { 20_000 };
    let (mut n_asked, mut most) = (0, 0);
    for turn in 0..n {
        let (heap, at) = (heaps[turn % 2], turn % 2 + 2 * random.below(50));
        free(heap, slots[at]);
        let before = world.shared.pages.stats().large_allocs;
        slots[at] = heap.allocate(bytes(&mut random), 1).start;
        n_asked += world.shared.pages.stats().large_allocs - before;
        most = most.max(world.shared.pages.stats().peak_pages);
    }
    world.check().unwrap();
    assert!(most < live * 7 / 5, "{most} pages for {live} that are live: lists keep memory from its use");
    slots.into_iter().for_each(|block| free(heaps[0], block));
    (n as u64, n_asked)
}

#[test]
fn blocks_of_one_length_take_the_lock_for_several_at_once() {
    let world = world_that_stays_dirty();
    let heap = world.heap();
    free(heap, heap.allocate(100 * PAGE_BYTES, 1).start);
    let before = world.shared.pages.stats().large_allocs;
    let held = blocks(heap, 2, 50);
    assert_eq!(world.shared.pages.stats().large_allocs - before, 50_u64.div_ceil(1 + u64::from(FILLED)));
    assert_eq!(fresh(&world), 100 << 16, "all of it was dirty");
    held.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}
