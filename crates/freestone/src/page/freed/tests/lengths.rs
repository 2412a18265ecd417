//! Lists and blocks of several lengths.
use super::*;

/// Five pages may be a quarter more than are wanted, six may not, and what is as long comes first.
#[test]
fn a_block_takes_a_run_that_is_a_little_longer_if_there_is_none_of_its_length() {
    let world = world_that_stays_dirty();
    let heap = world.heap();
    free(heap, heap.allocate(PAGE_BYTES, 1).start);
    let held: Vec<_> = [6, 5, 4].into_iter().flat_map(|pages| blocks(heap, pages, 1)).collect();
    held.iter().for_each(|&block| free(heap, block));
    let before = world.shared.pages.stats();
    let taken = [(); 2].map(|()| heap.allocate(4 * PAGE_BYTES - 100, 1).start);
    assert_eq!(taken, [held[2], held[1]]);
    assert_eq!(taken.map(|block| heap.usable_bytes(block)), [4, 5].map(|pages| Some(pages * PAGE_BYTES)));
    assert_eq!((listed(&world), world.shared.pages.stats()), (6, before), "the page heap was not asked");
    let cut = heap.allocate(4 * PAGE_BYTES, 1).start;
    assert_eq!((heap.usable_bytes(cut), listed(&world)), (Some(4 * PAGE_BYTES), 0), "the lists were emptied for it");
    taken.into_iter().for_each(|block| free(heap, block));
    assert_eq!(listed(&world), 4 + 5, "each goes to the list of its own length");
    assert!(blocks(heap, 16, 1).len() == 1 && !cut.is_null());
    let peak = world.shared.usage.peak_live_bytes();
    assert_eq!(peak, (4 + 16) << 16, "what a block had too much of was live as long as the block");
    world.check().unwrap();
}

/// The bar is one acquisition of the lock in 20 operations. An allocation that takes it is one that the page heap counts.
#[test]
fn blocks_of_many_lengths_that_come_and_go_seldom_need_the_page_heap() {
    for (least, most_bytes, pages) in [(40_000, 200_000, 230), (1 << 18, 1 << 20, 1050)] {
        come_and_go(least, most_bytes, pages);
    }
}

/// A hundred blocks of two heaps, which have about `live` pages, replaced at random.
fn come_and_go(least: usize, most_bytes: usize, live: u64) {
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
    assert!(cfg!(miri) || n_asked < n as u64 / 20, "{n_asked} of {n} blocks came from the page heap");
    assert!(most < live * 7 / 5, "{most} pages for {live} that are live: lists keep memory from its use");
    slots.into_iter().for_each(|block| free(heaps[0], block));
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
