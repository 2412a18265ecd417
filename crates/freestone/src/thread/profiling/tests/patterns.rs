//! Programs that allocate and free in a pattern: each of its places is sampled as often as any other.

use super::*;
use crate::thread::upkeep;
use freestone_os::Os;

/// Programs that allocate and free in a pattern: how many blocks each time, positive or negative. The last blocks are freed first.
const PATTERNS: [&[i32]; 6] =
    [&[1, -1], &[33, -33], &[40, -7, 7, -20, 1, -1, 9, -29], &[3000, -3000], &[700, -650, 600, -650], &[2, -1, 1, -2]];

#[test]
fn every_place_of_a_pattern_is_sampled_as_often_as_any_other() {
    const BLOCKS: usize = if cfg!(miri) { 400 } else { 1_200_000 };
    for (size, interval) in [(100, 1 << 12), (1000, 1 << 13)] {
        let block_bytes = crate::size_class::block_bytes(crate::size_class::class_of(size));
        let chance = -(-(block_bytes as f64) / interval as f64).exp_m1();
        for &pattern in if cfg!(miri) { &PATTERNS[..2] } else { &PATTERNS } {
            let world = world(interval, "default", pattern.len() as u64 * interval);
            let heap = world.heap();
            let n_places: usize = pattern.iter().map(|&n| usize::try_from(n).unwrap_or(0)).sum();
            let rounds = BLOCKS / n_places;
            let mut n_sampled = std::vec![0u32; n_places];
            let mut live = Vec::new();
            for _ in 0..rounds {
                let mut place = 0;
                for &n in pattern {
                    for _ in 0..n {
                        let block = allocate_hot(heap, size);
                        n_sampled[place] += u32::from(is_sampled_block(&world, block));
                        live.push(block);
                        place += 1;
                    }
                    for _ in n..0 {
                        free(heap, live.pop().expect("no more than were allocated"));
                    }
                }
            }
            // Neighbours together, so that each sum has a few hundred samples at least.
            let together = n_places.div_ceil(16);
            for (at, sums) in n_sampled.chunks(together).enumerate() {
                let n = (sums.len() * rounds) as f64;
                let off = f64::from(sums.iter().sum::<u32>()) - n * chance;
                let sigma = (n * chance * (1.0 - chance)).sqrt();
                assert!(
                    cfg!(miri) || off.abs() < 4.5 * sigma,
                    "{size} {pattern:?}, part {at}: off by {:.1} deviations",
                    off / sigma
                );
            }
            // The first places of all are those that find their bin empty.
            let off = f64::from(n_sampled[0]) - rounds as f64 * chance;
            assert!(off.abs() < 4.5 * (rounds as f64 * chance).sqrt() + 1.0, "{size} {pattern:?}: {}", n_sampled[0]);
            assert_eq!(world.shared.profile.n_dropped(), 0);
            live.into_iter().for_each(|block| free(heap, block));
            assert_eq!((heap.bins().live(crate::size_class::class_of(size)), estimates(&world).0), (0, 0.0));
            world.check().unwrap();
        }
    }
}

#[test]
fn blocks_that_other_threads_free_are_sampled_as_often_and_are_in_no_wrong_place() {
    let (n, rounds) = if cfg!(miri) { (300, 2) } else { (1000, 300) };
    for (size, interval) in [(4096, 1 << 14), (8000, 1 << 16)] {
        let world = world(interval, "default", size as u64);
        let (owner, other) = (world.heap(), world.heap());
        let block_bytes = crate::size_class::block_bytes(crate::size_class::class_of(size));
        for _ in 0..rounds {
            let blocks: Vec<_> = (0..n).map(|_| allocate_hot(owner, size)).collect();
            blocks.into_iter().for_each(|block| free(other, block));
            crate::thread::route::send_all(other);
        }
        world.check().unwrap();
        let since_start = estimates(&world).1;
        assert!(
            is_near(since_start, (n * rounds * block_bytes) as f64, block_bytes, interval),
            "{size}: {since_start}"
        );
    }
}

/// The tick takes the room of idle bins, and with many heaps what they have borrowed. If the next free brings the block that is chosen, it has to end the room as
/// well: else the refill that follows would find that the block has passed.
#[test]
fn a_block_that_is_freed_after_its_bin_was_idle_is_chosen_in_its_turn() {
    for (seed, size) in (0..if cfg!(miri) { 2 } else { 40 }).flat_map(|seed| [(seed, 64), (seed, 4096)]) {
        let world = world(2 * size as u64, "default", seed);
        let heap = world.heap();
        world.shared.usage.set_n_heaps(if size == 64 { 1 } else { 1000 }, 0);
        let mut blocks: Vec<_> = (0..60).map(|_| allocate(heap, size)).collect();
        for _ in 0..40 {
            for _ in 0..2 {
                world.os().advance_ms(10_000);
                upkeep::tick(heap, world.os().now_ms() as u32);
            }
            blocks.drain(..2).for_each(|block| free(heap, block));
            blocks.extend([(); 2].map(|()| allocate(heap, size)));
        }
        blocks.into_iter().for_each(|block| free(heap, block));
        world.check().unwrap();
    }
}
