//! Samples beside guarded blocks.

use super::*;
use crate::config::key;
use crate::guarded::geometry::N_SLOTS;

#[test]
fn guarded_blocks_and_samples_take_none_from_each_other() {
    let (levels, n, expected) = if cfg!(miri) { (&LEVELS[..1], 400, 8..36) } else { (&LEVELS[..], 60_000, 2307..3750) };
    for level in levels {
        let interval = 1 << 12;
        let world = world(interval, level, 77);
        world.set(key::GUARD_SAMPLE, "20");
        let heap = world.heap();
        let mut n_guarded = 0;
        for _ in 0..n {
            let block = allocate_hot(heap, 100);
            n_guarded += usize::from(world.shared.guarded.contains(block.addr()));
            free(heap, block);
        }
        assert!(expected.contains(&n_guarded), "{level}: {n_guarded}");
        let since_start = estimates(&world).1;
        assert!(is_near(since_start, (n * 112) as f64, 112, interval), "{level}: {since_start}");
        world.check().unwrap();
    }
}

#[test]
fn allocations_that_are_due_to_be_guarded_and_cannot_be_are_sampled_as_others_are() {
    let (n, interval) = if cfg!(miri) { (400, 1 << 10) } else { (200_000, 1 << 12) };
    for family in [Family::C, Family::Rust] {
        let world = world(interval, "default", 78);
        world.shared.profile.expect_rust();
        world.set(key::GUARD_SAMPLE, "1");
        let heap = world.heap();
        let one = |size| heap.allocate_for(Request::new(size, 1, family)).start;
        // All slots are in use, or the blocks of the family cannot be guarded.
        let mut held: Vec<_> = (0..N_SLOTS).map(|_| one(48)).collect();
        let before = estimates(&world).1;
        for round in 0..n {
            held.push(one(100));
            // Some at once, some late: the bin is empty now and again, and refilled.
            if round % 50 == 49 {
                held.drain(N_SLOTS..).for_each(|block| free(heap, block));
            }
        }
        let estimate = estimates(&world).1 - before;
        assert!(is_near(estimate, (n * 112) as f64, 112, interval), "{family:?}: {estimate}");
        // What is chosen when the profile stops can be allocated.
        world.shared.profile.stop();
        assert!((0..1000).all(|_| !one(100).is_null()));
        world.check().unwrap();
    }
}
