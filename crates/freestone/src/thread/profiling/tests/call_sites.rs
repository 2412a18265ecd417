//! The truth of profiles, call site by call site. A call site is a depth of recursion here: how often one return address is on a stack.

use super::*;
use core::hint::black_box;
use std::vec;

/// One byte in so many is sampled.
const INTERVAL: u64 = 1 << 14;

/// What a call site asks for, how often, and what a block of that size takes. The last blocks are larger than anything that is not sampled for certain.
const SITES: [(usize, usize, usize); 10] = [
    (1, 16_384, 16),
    (16, 16_384, 16),
    (100, 4096, 112),
    (1000, 1024, 1024),
    (5000, 300, 5120),
    (28_000, 40, 28_672),
    (60_000, 20, 65_536),
    (300_000, 4, 327_680),
    (1 << 20, 2, 1 << 20),
    (64 << 20, 2, 64 << 20),
];

/// Allocates from the call site of this depth.
#[inline(never)]
fn allocate_at(depth: usize, heap: Own<'_, Fake>, size: usize) -> *mut u8 {
    if depth == 0 {
        return black_box(allocate(heap, size));
    }
    let block = allocate_at(black_box(depth - 1), heap, size);
    black_box(block)
}

/// The return address that is on a stack once for each level of recursion.
fn level() -> usize {
    const DEPTH: usize = 30;
    let world = world(1, "default", 1);
    allocate_at(DEPTH, world.heap(), 100);
    let mut most = (0, 0);
    let visit = |stack: &[AtomicUsize], _| {
        for address in stack {
            let n = times(stack, address.load(Ordering::Relaxed));
            most = most.max((n, address.load(Ordering::Relaxed)));
        }
        Ok::<_, ()>(())
    };
    world.shared.profile.for_each(visit).expect("no error");
    assert_eq!(most.0, DEPTH);
    most.1
}

fn times(stack: &[AtomicUsize], address: usize) -> usize {
    stack.iter().filter(|place| place.load(Ordering::Relaxed) == address).count()
}

/// Bytes that are live, and that were allocated, by call site.
fn by_site(world: &World, level: usize) -> [(f64, f64); SITES.len()] {
    let mut sums = [(0.0, 0.0); SITES.len()];
    let visit = |stack: &[AtomicUsize], counts: StackCounts| {
        let sum = &mut sums[times(stack, level) - 1];
        sum.0 += counts.live.estimate().1;
        sum.1 += counts.since_start.estimate().1;
        Ok::<_, ()>(())
    };
    world.shared.profile.for_each(visit).expect("no error");
    sums
}

/// The standard deviation of the estimate of `n` blocks of `block_bytes`.
fn deviation(n: usize, block_bytes: usize) -> f64 {
    let chance = -(-(block_bytes as f64) / INTERVAL as f64).exp_m1();
    (n as f64 * chance * (1.0 - chance)).sqrt() * block_bytes as f64 / chance
}

#[test]
#[cfg_attr(miri, ignore = "stacks are told apart by unwinding")]
#[cfg_attr(not(target_os = "linux"), ignore = "stacks are told apart by unwinding")]
fn each_call_site_is_within_three_deviations_over_two_hundred_seeds() {
    const SEEDS: u64 = 200;
    let level = level();
    let mut far = vec![0; SITES.len()];
    let mut means = [(0.0, 0.0); SITES.len()];
    for seed in 0..SEEDS {
        let world = world(INTERVAL, "default", seed * 7919 + 1);
        let heap = world.heap();
        let mut kept = Vec::new();
        // By turns, so that no call site has a time of its own.
        for turn in 0..4 {
            for (at, (size, n, _)) in SITES.into_iter().enumerate() {
                for block in 0..n {
                    if block % 4 == turn {
                        let block = allocate_at(at + 1, heap, size);
                        // The first half is freed.
                        if turn < 2 { free(heap, block) } else { kept.push(block) }
                    }
                }
            }
        }
        for (at, (estimate, (_, n, bytes))) in by_site(&world, level).into_iter().zip(SITES).enumerate() {
            let n_live = (0..n).filter(|block| block % 4 >= 2).count();
            let off = |estimate: f64, n: usize| (estimate - (n * bytes) as f64) / deviation(n, bytes).max(1.0);
            let (live, allocated) = (off(estimate.0, n_live), off(estimate.1, n));
            far[at] += usize::from(live.abs() > 3.0) + usize::from(allocated.abs() > 3.0);
            assert!(live.abs() < 6.0 && allocated.abs() < 6.0, "seed {seed}, {bytes}: {live} {allocated}");
            means[at].0 += live / SEEDS as f64;
            means[at].1 += allocated / SEEDS as f64;
        }
        kept.into_iter().for_each(|block| free(heap, block));
        assert!(by_site(&world, level).iter().all(|&(live, _)| live == 0.0));
        assert_eq!(world.shared.profile.n_dropped(), 0);
        world.check().unwrap();
    }
    // Of 400 figures of a call site, one is further away than three deviations by chance, and more of few samples.
    assert!(far.iter().all(|&n| n <= 8), "{far:?}");
    // The mean of 200 is fourteen times as near.
    let most = 3.0 / (SEEDS as f64).sqrt();
    assert!(means.iter().all(|mean| mean.0.abs() < most && mean.1.abs() < most), "{means:?}");
}
