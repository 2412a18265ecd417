#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::heap_profile::stack_table::StackCounts;
use crate::size_class::class_of;
use crate::stats::rows::HeapKind;
use crate::testing::{LEVELS, OneHeap, World, free};
use crate::thread::drain::drain;
use crate::thread::explicit::make_sampled_heap;
use crate::thread::upkeep;
use freestone_base::sync::AtomicUsize;
use freestone_testkit::ops::{Player, any_stream};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

mod heap_rows;
mod resident;

/// What `docs/monitoring.md` says adds up, does.
fn hold_identities(world: &World) {
    let held = with_details(&world.shared, &world.threads, |details| {
        let Details { stats, classes, heaps } = *details;
        let sum = |figure: fn(&ClassStats) -> u64| classes.iter().map(figure).sum::<u64>();
        assert_eq!(stats.committed, stats.live + stats.cached + stats.fragmented + stats.dirty + stats.metadata);
        assert_eq!((stats.live, stats.cached), (sum(|row| row.live), sum(|row| row.cached)));
        let counts = (sum(|row| row.n_allocations), sum(|row| row.n_frees), sum(|row| row.n_remote_frees));
        assert_eq!((stats.n_allocations, stats.n_frees, stats.n_remote_frees), counts);
        assert!(stats.n_frees <= stats.n_allocations && stats.live <= stats.peak_live, "{stats:?}");
        assert!(stats.dirty_by_age.iter().sum::<u64>() <= stats.dirty, "{stats:?}");
        let small = || classes.iter().filter(|row| row.block_bytes != 0);
        assert!(small().all(|row| row.n_live() == row.n_allocations - row.n_frees), "{classes:?}");
        let pages = world.shared.pages.stats();
        let out: u64 = small().map(|row| row.live + row.cached).sum();
        assert_eq!(stats.fragmented + out, pages.small_pages * PAGE_BYTES as u64, "nothing was cut");
        let spans: u64 = heaps.iter().map(|heap| heap.spans).sum();
        assert!(spans <= pages.small_pages * PAGE_BYTES as u64, "{heaps:?}");
        assert_eq!(heaps.len(), stats.n_threads as usize);
        for heap in heaps.iter().filter(|heap| heap.kind == HeapKind::Explicit) {
            assert!(heap.live + heap.cached <= heap.spans + heap.large, "{heap:?}");
        }
    });
    assert_eq!(held, Some(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 48 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two heaps in turn, so that blocks are in flight, too.
    #[test]
    fn figures_add_up_under_every_stream_of_operations(
        stream in any_stream(24, if cfg!(miri) { 40 } else { 400 }, vec![0]),
        turns in proptest::collection::vec(0usize..2, 400),
        level in proptest::sample::select(&LEVELS[..]),
    ) {
        let world = World::hardened(4096, level);
        let heaps = [world.heap(), world.heap()];
        let mut player = Player::new(OneHeap { world: &world, heap: heaps[0] });
        for (at, (op, turn)) in stream.ops.iter().zip(&turns).enumerate() {
            player.subject.heap = heaps[*turn];
            player.step(*op).unwrap();
            if at % 20 == 0 {
                hold_identities(&world);
            }
        }
        player.drain().unwrap();
        hold_identities(&world);
        world.end(heaps[0]);
        hold_identities(&world);
    }
}

#[test]
fn an_explicit_heaps_row_has_what_it_holds() {
    let world = World::new(4096);
    let (heap, explicit) = (world.heap(), world.explicit_heap());
    let (small, large) = {
        let entered = explicit.enter();
        (entered.own().allocate(1000, 1).start, entered.own().allocate(300_000, 1).start)
    };
    explicit.set_limit(Some(40)).unwrap();
    let row = || {
        with_details(&world.shared, &world.threads, |details| {
            *details.heaps.iter().find(|row| row.kind == HeapKind::Explicit).unwrap()
        })
        .unwrap()
    };
    let large_bytes = 300_000_u64.next_multiple_of(PAGE_BYTES as u64);
    assert_eq!(
        (row().live, row().large, row().limit),
        (whole(1000) + large_bytes, large_bytes, 40 * PAGE_BYTES as u64)
    );
    hold_identities(&world);
    free(heap, large);
    free(heap, small);
    assert_eq!((row().live, row().large), (whole(1000), 0), "the small block is on its way back");
    drain(explicit.enter().own());
    assert_eq!(row().live, 0);
    hold_identities(&world);
}

/// Bytes of a block for `size` bytes.
fn whole(size: usize) -> u64 {
    block_bytes(class_of(size)) as u64
}

/// Each of these numbers differs from the others, so that none can stand for another.
#[test]
fn every_block_is_counted_once_and_at_its_full_size_whoever_frees_it() {
    let world = World::new(4096);
    let (first, second) = (world.heap(), world.heap());
    let statistics = || take(&world.shared, &world.threads);
    let [mut short, mut long, mut large] = [(100, 48), (70, 1000), (3, 300_000)]
        .map(|(n, size)| (0..n).map(|_| first.allocate(size, 1).start).collect::<Vec<_>>());
    let large_bytes = (300_000_usize.next_multiple_of(PAGE_BYTES)) as u64;
    let live =
        |n_short: u64, n_long: u64, n_large: u64| n_short * whole(48) + n_long * whole(1000) + n_large * large_bytes;
    let stats = statistics();
    assert_eq!((stats.n_allocations, stats.n_frees, stats.live), (173, 0, live(100, 70, 3)));
    assert_eq!((stats.n_threads, stats.n_remote_frees, stats.n_handovers), (2, 0, 0));

    short.drain(..20).for_each(|block| free(first, block));
    long.drain(..7).for_each(|block| free(second, block));
    free(second, large.remove(0));
    let stats = statistics();
    assert_eq!((stats.n_allocations, stats.n_frees, stats.live), (173, 28, live(80, 63, 2)));
    assert_eq!((stats.n_remote_frees, stats.n_handovers), (7, 0));
    assert!(stats.cached >= 20 * whole(48) + 7 * whole(1000), "{stats:?}");

    upkeep::flush_all(second);
    assert_eq!((statistics().n_handovers, statistics().cached), (1, stats.cached), "on the way is cached");
    upkeep::flush_all(first);
    let stats = statistics();
    assert_eq!((stats.live, stats.cached), (live(80, 63, 2), 0));
    let pages = world.shared.pages.stats();
    assert_eq!(stats.fragmented, pages.small_pages * PAGE_BYTES as u64 - live(80, 63, 0));
    assert_eq!(stats.dirty, large_bytes);
    assert_eq!(stats.dirty_by_age.iter().sum::<u64>(), large_bytes);

    // Blocks of a dead thread go back to spans without an owner.
    world.end(first);
    free(second, short.remove(0));
    upkeep::flush_all(second);
    let stats = statistics();
    assert_eq!((stats.live, stats.cached, stats.n_threads), (live(79, 63, 2), 0, 1));
    assert_eq!((stats.n_allocations, stats.n_frees, stats.n_remote_frees), (173, 29, 7));
    assert_eq!(stats.live + stats.cached + stats.fragmented + stats.dirty + stats.metadata, stats.committed);
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_cached_large_block_is_cached_and_counted_as_freed() {
    let world = World::new(4096);
    let heap = world.heap();
    for _ in 0..5 {
        let block = heap.allocate(100_000, 1).start;
        assert_eq!(take(&world.shared, &world.threads).live, 2 * PAGE_BYTES as u64);
        free(heap, block);
    }
    let stats = take(&world.shared, &world.threads);
    assert_eq!((stats.live, stats.cached), (0, 2 * PAGE_BYTES as u64));
    assert_eq!((stats.n_allocations, stats.n_frees), (5, 5));
}

#[test]
fn large_blocks_in_the_quarantine_of_a_watched_heap_are_cached_and_counted_as_freed() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let blocks: Vec<_> = (0..3).map(|_| heap.allocate(100_000, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    let stats = take(&world.shared, &world.threads);
    assert_eq!((stats.n_allocations, stats.n_frees, stats.live), (3, 3, 0));
    assert_eq!(stats.cached, 3 * 2 * PAGE_BYTES as u64);
}

#[test]
fn peaks_stay_and_what_was_purged_and_fresh_adds_up() {
    let world = World::new(4096);
    world.spend_early_purges();
    let heap = world.heap();
    let before = take(&world.shared, &world.threads);
    let block = heap.allocate(40 * PAGE_BYTES, 1).start;
    free(heap, block);
    assert_eq!(take(&world.shared, &world.threads).dirty, 40 * PAGE_BYTES as u64);
    world.shared.pages.purge();
    let stats = take(&world.shared, &world.threads);
    let pages = |bytes: u64| bytes / PAGE_BYTES as u64;
    assert_eq!((pages(stats.fresh - before.fresh), pages(stats.purged - before.purged), stats.dirty), (40, 40, 0));
    assert_eq!(pages(stats.peak_live), 40);
    assert_eq!(pages(stats.peak_committed - before.peak_committed), 40, "thread heaps have pages, too");
}

/// No heap has published these blocks: they came out of a bin, and go back into it.
#[test]
fn the_peak_never_falls_below_what_statistics_have_said_was_live() {
    let world = World::new(4096);
    let heap = world.heap();
    let first = heap.allocate(100, 1).start;
    let published = world.shared.usage.peak_live_bytes();
    let blocks: Vec<_> = (0..20).map(|_| heap.allocate(100, 1).start).collect();
    assert_eq!(world.shared.usage.peak_live_bytes(), published, "the bin had them all");
    let seen = take(&world.shared, &world.threads);
    assert!(seen.live > published && seen.peak_live == seen.live, "{seen:?}");
    blocks.into_iter().chain([first]).for_each(|block| free(heap, block));
    let later = take(&world.shared, &world.threads);
    assert_eq!((later.live, later.peak_live), (0, seen.peak_live));
}

/// A watched heap's blocks pass through no bin.
#[test]
fn small_blocks_of_a_watched_heap_are_counted_when_they_are_allocated_and_freed() {
    let world = World::hardened(4096, "checks");
    let heap = world.heap();
    let blocks: Vec<_> = (0..50).map(|_| heap.allocate(100, 1).start).collect();
    let stats = take(&world.shared, &world.threads);
    assert_eq!((stats.n_allocations, stats.n_frees), (50, 0));
    assert!(stats.live >= 50 * 100);
    blocks.into_iter().for_each(|block| free(heap, block));
    let stats = take(&world.shared, &world.threads);
    assert_eq!((stats.n_allocations, stats.n_frees, stats.live), (50, 50, 0));
}

#[test]
fn a_profile_of_every_allocation_has_the_bytes_and_blocks_of_the_statistics() {
    // Above that, freed blocks that wait in the quarantine count as live in the statistics, and not in the profile.
    for level in ["off", "default"] {
        let world = World::hardened(4096, level);
        assert!(make_sampled_heap(&world.shared, || Some(world.explicit_heap())) && world.shared.profile.start(1));
        let heaps = [world.heap(), world.heap()];
        let mut blocks = Vec::new();
        for (n, size) in [1, 16, 100, 1000, 5000, 30_000, 60_000, 300_000, 1 << 20, 64 << 20].into_iter().enumerate() {
            blocks.extend((0..3).map(|_| heaps[n % 2].allocate(size, 1).start));
            free(heaps[0], blocks.swap_remove(n));
            let mut sums = (0.0, 0.0);
            let visit = |_: &[AtomicUsize], counts: StackCounts| {
                sums.0 += counts.live.estimate().1;
                sums.1 += counts.since_start.estimate().0;
                Ok::<_, ()>(())
            };
            world.shared.profile.for_each(visit).expect("no error");
            heaps.into_iter().for_each(drain);
            let stats = take(&world.shared, &world.threads);
            assert_eq!((sums.0 as u64, sums.1.round() as u64), (stats.live, stats.n_allocations), "{level} {size}");
        }
    }
}

/// It is in no span, and its pages and records are not the page heap's.
#[test]
fn a_guarded_block_is_live_in_its_own_class() {
    let world = World::new(4096);
    let heap = world.heap();
    world.set(key::GUARD_SAMPLE, "1");
    let block = heap.allocate(100, 1).start;
    assert!(world.shared.guarded.contains(block.addr()));
    let mut classes = [ClassStats::default(); CLASS_ROWS];
    let stats = take_classes(&world.shared, &world.threads, &mut classes);
    let (pages, guarded) = (&world.shared.pages, &world.shared.guarded);
    assert_eq!(stats.metadata, pages.metadata_bytes() + guarded.metadata_bytes());
    let spans = pages.stats().small_pages * PAGE_BYTES as u64 + guarded.open_bytes();
    assert_eq!((stats.live, stats.fragmented), (whole(100), spans - whole(100)));
    assert!(classes.iter().enumerate().all(|(class, row)| (row.live > 0) == (class == class_of(100))), "{classes:?}");
}
