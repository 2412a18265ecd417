use super::choosing::left;
use super::*;
use crate::heap_profile::stack_table::StackCounts;
use crate::size_class::{N_CLASSES, SMALL_MAX};
use crate::testing::{LEVELS, World, free, reallocate};
use crate::thread::explicit::make_sampled_heap;
use freestone_base::sync::AtomicUsize;
use freestone_base::sync::Ordering;
use freestone_os::fake::Fake;
use std::vec::Vec;

mod call_sites;
mod guarded;
mod patterns;
mod steps;

/// A world of which one byte in `interval` is sampled, with a heap.
fn world(interval: u64, level: &str, seed: u64) -> World {
    let world = World::hardened(4096, level);
    world.shared.random.draw(|| seed);
    assert!(make_sampled_heap(&world.shared, || Some(world.explicit_heap())));
    assert!(world.shared.profile.start(interval));
    world
}

fn allocate(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    let block = heap.allocate(size, 1).start;
    assert!(!block.is_null());
    block
}

/// Bytes that are live, and that were allocated, according to the profile.
fn estimates(world: &World) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    let visit = |_: &[AtomicUsize], counts: StackCounts| {
        sums.0 += counts.live.estimate().1;
        sums.1 += counts.since_start.estimate().1;
        Ok::<_, ()>(())
    };
    world.shared.profile.for_each(visit).expect("no error");
    sums
}

/// Whether an estimate is within four standard deviations of the exact bytes of blocks of `block_bytes`: it is made of whole samples, each of which stands
/// for the same number of bytes.
fn is_near(estimate: f64, exact: f64, block_bytes: usize, interval: u64) -> bool {
    let chance = -(-(block_bytes as f64) / interval as f64).exp_m1();
    let (n, each) = (exact / block_bytes as f64, block_bytes as f64 / chance);
    (estimate - exact).abs() <= 4.0 * (n * chance * (1.0 - chance)).sqrt() * each + 1.0
}

#[test]
fn of_blocks_that_come_and_go_as_many_are_sampled_as_of_those_that_stay() {
    let interval = 1 << 14;
    let (levels, n_patterns, n) = if cfg!(miri) { (&LEVELS[..1], 2, 500) } else { (&LEVELS[..], 5, 30_000) };
    let patterns = [(0usize, 1usize), (1000, 30), (1, 1), (100, 1), (0, 3000)];
    for level in levels {
        for (n_kept, n_at_once) in patterns.into_iter().take(n_patterns) {
            let world = world(interval, level, (n_kept + n_at_once) as u64);
            let heap = world.heap();
            let kept: Vec<_> = (0..n_kept).map(|_| allocate(heap, 1000)).collect();
            for _ in 0..n / n_at_once {
                let blocks: Vec<_> = (0..n_at_once).map(|_| allocate(heap, 1000)).collect();
                blocks.into_iter().for_each(|block| free(heap, block));
            }
            let (live, since_start) = estimates(&world);
            let (exact_live, exact) = ((n_kept * 1024) as f64, ((n_kept + n) * 1024) as f64);
            let case = std::format!("{level} {n_kept} {n_at_once}: {live} of {exact_live}, {since_start} of {exact}");
            assert!(is_near(since_start, exact, 1024, interval), "{case}");
            assert!(is_near(live, exact_live, 1024, interval), "{case}");
            kept.into_iter().for_each(|block| free(heap, block));
            assert_eq!(estimates(&world).0, 0.0, "{case}");
            assert_eq!(world.shared.profile.n_dropped(), 0, "{case}");
            world.check().unwrap();
        }
    }
}

/// Allocates `n` blocks of `size` bytes, of which every second one is freed at once, and frees the others with the next call.
fn churn(heap: Own<'_, Fake>, size: usize, n: usize) -> Vec<*mut u8> {
    let mut kept = Vec::new();
    for at in 0..n {
        let block = allocate(heap, size);
        if at % 2 == 0 { free(heap, block) } else { kept.push(block) }
    }
    kept
}

#[test]
fn over_many_seeds_estimates_are_right_on_average_at_every_size() {
    const SEEDS: u64 = if cfg!(miri) { 1 } else { 200 };
    let interval = 1 << 19;
    // Sizes, how many blocks, and what a block of that size takes.
    let cases = [
        (1, 4000, 16),
        (16, 4000, 16),
        (100, 3000, 112),
        (1000, 2000, 1024),
        (5000, 600, 5120),
        (28_000, 200, 28_672),
        (60_000, 60, 65_536),
        (300_000, 20, 327_680),
        (1 << 20, 10, 1 << 20),
        (64 << 20, 2, 64 << 20),
    ];
    for (size, n, block_bytes) in cases.into_iter().step_by(if cfg!(miri) { 4 } else { 1 }) {
        let n: usize = if cfg!(miri) { n / 20 + 1 } else { n };
        let mut sums = (0.0, 0.0);
        let world = world(interval, "default", size as u64);
        let heap = world.heap();
        for _ in 0..SEEDS {
            let before = estimates(&world);
            let kept = churn(heap, size, n);
            let after = estimates(&world);
            sums.0 += after.0 - before.0;
            sums.1 += after.1 - before.1;
            kept.into_iter().for_each(|block| free(heap, block));
        }
        let exact = (n * block_bytes) as f64 * SEEDS as f64;
        assert!(is_near(sums.1, exact, block_bytes, interval), "{size}: {} of {exact}", sums.1);
        assert!(is_near(sums.0, exact / 2.0, block_bytes, interval), "{size}: {} of {}", sums.0, exact / 2.0);
        assert_eq!(estimates(&world).0, 0.0);
        world.check().unwrap();
    }
}

#[test]
fn a_large_block_that_grows_or_moves_stays_one_sample_at_most() {
    for level in if cfg!(miri) { &LEVELS[..1] } else { &LEVELS[..] } {
        let world = world(1, level, 9);
        let heap = world.heap();
        let mut block = allocate(heap, 100_000);
        for size in [200_000, 700_000, 90_000, 3 << 20, 5 << 20, 300_000] {
            block = reallocate(heap, block, size);
            assert!(!block.is_null());
            let usable = heap.usable_bytes(block).expect("the block is live") as f64;
            let live = estimates(&world).0;
            // A watched heap has room for a canary behind what was asked for.
            assert!((usable - 1.0..usable + 65_552.0).contains(&live), "{level} {size}: {live} of {usable}");
        }
        free(heap, block);
        assert_eq!(estimates(&world).0, 0.0);
        world.check().unwrap();
    }
}

#[test]
fn what_another_thread_frees_and_what_an_explicit_heap_allocates_is_counted_as_it_should_be() {
    let world = world(1, "default", 3);
    let [one, other] = [world.heap(), world.heap()];
    let blocks: Vec<_> = (0..100).map(|n| allocate(one, 10 * n + 1)).collect();
    assert!(estimates(&world).0 > 0.0);
    let before = estimates(&world).1;
    let explicit = world.explicit_heap();
    let of_explicit = allocate(explicit.enter().own(), 100);
    assert_eq!(estimates(&world).1, before, "blocks of explicit heaps are not sampled");
    blocks.into_iter().for_each(|block| free(other, block));
    assert_eq!(estimates(&world).0, 0.0);
    free(other, of_explicit);
    world.check().unwrap();
}

#[test]
fn a_sampled_block_counts_as_one_of_its_own_class_for_the_heap_that_it_is_for() {
    for level in LEVELS {
        let world = world(1, level, 3);
        let heap = world.heap();
        let sampled = sampled_heap(&world.shared).expect("the heap was made").gated().heap();
        let sizes = [1, 100, 112, 512, 4096, 30_000, SMALL_MAX];
        let blocks = sizes.map(|size| allocate(heap, size));
        for class in 0..N_CLASSES {
            assert_eq!(sampled.counts(class).allocs, 0, "{level}: class {class}");
        }
        blocks.into_iter().for_each(|block| free(heap, block));
        for class in 0..N_CLASSES {
            let counts = heap.heap().counts(class);
            assert_eq!(counts.allocs, counts.frees, "{level}: class {class}");
        }
        world.check().unwrap();
    }
}

#[test]
fn a_small_block_that_is_resized_is_counted_once() {
    let world = world(1, "default", 3);
    let heap = world.heap();
    let mut block = allocate(heap, 10);
    for size in [10, 20, 500, 40, 30_000, 100_000, 60] {
        block = reallocate(heap, block, size);
        assert!(!block.is_null());
        let n = {
            let mut n = 0.0;
            let visit = |_: &[AtomicUsize], counts: StackCounts| {
                n += counts.live.estimate().0;
                Ok::<_, ()>(())
            };
            world.shared.profile.for_each(visit).expect("no error");
            n
        };
        assert!((n - 1.0).abs() < 0.01, "{size}: {n} blocks");
    }
    free(heap, block);
    assert_eq!(estimates(&world).0, 0.0);
}

#[test]
fn a_sample_that_is_due_while_the_heap_of_samples_is_busy_is_lost_and_counted() {
    let world = world(1, "default", 3);
    let heap = world.heap();
    let busy = sampled_heap(&world.shared).expect("the heap was made").enter();
    let block = allocate(heap, 100);
    assert_eq!((world.shared.profile.n_dropped(), estimates(&world)), (1, (0.0, 0.0)));
    drop(busy);
    free(heap, block);
    assert!(estimates(&world).0 == 0.0);
    free(heap, allocate(heap, 100));
    assert_eq!(world.shared.profile.n_dropped(), 1);
    world.check().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "fills the table of stacks")]
fn where_no_other_stack_has_room_an_allocation_gets_an_ordinary_block_and_its_sample_is_lost_and_counted() {
    let world = world(1, "default", 3);
    let (heap, profile) = (world.heap(), &world.shared.profile);
    assert!((1..100_000).any(|n| profile.add_stack(&[n], None).is_none()), "the table is full");
    let block = allocate(heap, 100);
    assert!(!is_sampled_block(&world, block));
    assert_eq!((profile.n_dropped(), estimates(&world)), (2, (0.0, 0.0)));
    free(heap, block);
    world.check().unwrap();
}

/// As the hot paths allocate: what the bin has is not looked at.
fn allocate_hot(heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    let block = heap.bins().pop(crate::size_class::class_of(size));
    if block.is_null() { allocate(heap, size) } else { block }
}

#[test]
fn the_hot_paths_cannot_reach_a_chosen_block_unseen_and_have_all_room_when_it_is_far() {
    use crate::random::RandomNumbers;
    for (size, interval) in [(16, 1 << 9), (16, 1 << 16), (500, 1 << 14), (500, 1 << 20), (20_000, 1 << 16)] {
        let world = world(interval, "default", interval);
        let (heap, class, source) = (world.heap(), crate::size_class::class_of(size), RandomNumbers::new());
        let (mut live, mut was_near, mut was_far_again, mut most_room) = (Vec::new(), false, false, 0);
        for _ in 0..if cfg!(miri) { 30 } else { 2000 } {
            let draw = source.draw(|| 5);
            let n = 1 << (draw >> 8 & 7);
            for _ in 0..n {
                if draw & 1 == 0 {
                    live.push(allocate_hot(heap, size));
                } else if let Some(block) = live.pop() {
                    free(heap, block);
                }
                let (bins, left) = (heap.bins(), left(heap, class).expect("it is on") as i64);
                let room = bins.room(class).max(0);
                assert!(room < left, "{size}: {room} of {left}");
                let whole = whole_room(heap, class);
                most_room = most_room.max(whole);
                was_near |= whole > room;
                was_far_again |= was_near && whole == room && room > 0;
            }
        }
        assert!(cfg!(miri) || was_near && (was_far_again || interval < 1 << 14), "{size}");
        assert!(most_room <= i64::from(crate::thread::flush::own_capacity(heap, class)), "{size}: {most_room}");
        live.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}

/// Whether a block is one that was sampled.
fn is_sampled_block(world: &World, block: *mut u8) -> bool {
    let entry = world.shared.pages.view().entry_of_block(block.addr());
    entry.is_some_and(|entry| {
        world.shared.profile.is_generation(entry.generation().number()) && entry.generation().is_explicit()
    })
}

#[test]
fn a_heap_that_many_short_threads_use_in_turn_is_sampled_as_often() {
    let (interval, n) = (1 << 12, if cfg!(miri) { 1000 } else { 100_000 });
    let world = world(interval, "default", 21);
    let heap = world.heap();
    for _ in 0..n / 10 {
        heap.heap().change_thread();
        let blocks: Vec<_> = (0..10).map(|_| allocate_hot(heap, 100)).collect();
        blocks.into_iter().for_each(|block| free(heap, block));
    }
    let since_start = estimates(&world).1;
    assert!(is_near(since_start, (n * 112) as f64, 112, interval), "{since_start}");
    world.check().unwrap();
}

#[test]
fn a_profile_that_was_stopped_leaves_no_block_that_cannot_be_allocated() {
    let world = world(64, "default", 5);
    let heap = world.heap();
    let class = crate::size_class::class_of(16);
    let blocks: Vec<_> = (0..500).map(|_| allocate_hot(heap, 16)).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    let (n, n_samples) = (heap.bins().len(class), estimates(&world).1);
    assert!(n > 100);
    world.shared.profile.stop();
    let blocks: Vec<_> = (0..n).map(|_| allocate_hot(heap, 16)).collect();
    assert_eq!((heap.bins().len(class), estimates(&world).1), (0, n_samples));
    assert!(blocks.iter().all(|&block| !is_sampled_block(&world, block)));
    blocks.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

#[test]
fn a_second_free_of_a_chosen_block_is_reported() {
    use crate::config::key;
    use crate::misuse::{Misuse, seen};
    let world = world(1, "default", 3);
    world.set(key::MISUSE, "report");
    let heap = world.heap();
    let blocks: Vec<_> = (0..9).map(|_| heap.bins().pop(crate::size_class::class_of(48))).collect();
    assert!(blocks.iter().all(|block| block.is_null()), "every block of the bin is chosen");
    world.shared.profile.stop();
    let blocks: Vec<_> = (0..9).map(|_| allocate(heap, 48)).collect();
    assert!(world.shared.profile.start(1));
    blocks.iter().for_each(|&block| free(heap, block));
    let class = crate::size_class::class_of(48);
    heap.bins().choose_first(class);
    free(heap, blocks[4]);
    free(heap, blocks[8]);
    let twice = |at: usize| (Misuse::DoubleFree { block_bytes: 48 }, blocks[at].addr());
    assert_eq!(seen::take(), [twice(4), twice(8)]);
    world.check().unwrap();
}
