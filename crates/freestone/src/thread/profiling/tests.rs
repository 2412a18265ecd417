use super::*;
use crate::heap_profile::stack_table::StackCounts;
use crate::testing::{LEVELS, World, free};
use crate::thread::explicit::make_sampled_heap;
use freestone_base::sync::AtomicUsize;
use freestone_os::fake::Fake;
use std::vec::Vec;

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
    if block.is_null() {
        let c = crate::size_class::class_of(size);
        panic!(
            "left {:?} len {} room {} aside {} at {}",
            left(heap, c),
            heap.bins().len(c),
            heap.bins().room(c),
            heap.bins().len_with_aside(c),
            heap.heap().profile_countdowns().at[c].get()
        );
    }
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
    for level in LEVELS {
        for (n_kept, n_at_once) in [(0usize, 1usize), (1, 1), (100, 1), (1000, 30), (0, 3000)] {
            let world = world(interval, level, (n_kept + n_at_once) as u64);
            let heap = world.heap();
            let kept: Vec<_> = (0..n_kept).map(|_| allocate(heap, 1000)).collect();
            let n = 30_000;
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
