use super::*;
use crate::config::key;
use crate::page::tests::{HandedOut, take_with_room, world_that_stays_dirty};
use crate::testing::World;
use proptest::prelude::*;
use std::vec::Vec;

fn allocate(world: &World, pages: u32, kind: Kind) -> Run {
    world.shared.pages.allocate(Pages(pages), Pages(1), kind).expect("the fake kernel has memory")
}

fn free(world: &World, run: Run) {
    world.shared.pages.free(OwnedRun::taken(Extent::new(run.page, run.pages)));
}

#[test]
fn dirty_pages_are_taken_before_clean_ones_and_do_not_count_as_fresh() {
    for kind in [Kind::Large, Kind::Small] {
        let world = world_that_stays_dirty();
        let [run, _wall] = [6, 1].map(|n| allocate(&world, n, kind));
        assert!(run.zero);
        free(&world, run);
        let fresh = world.fresh_pages();
        let [first, second, third] = [4, 2, 1].map(|n| allocate(&world, n, kind));
        assert_eq!((first.page, second.page), (run.page, run.page + Pages(4)));
        assert!(!first.zero && !second.zero && third.zero);
        assert_eq!(world.fresh_pages(), fresh + 1);
    }
}

/// A run that holds the block wherever the run starts has three pages more. Beside that search, one is for runs that are shorter, and hold it.
#[test]
fn an_aligned_block_takes_a_dirty_run_that_has_room_only_where_it_starts() {
    for kind in [Kind::Large, Kind::Small] {
        let world = world_that_stays_dirty();
        let take = |n| world.shared.pages.allocate(Pages(n), Pages(4), kind).expect("the fake kernel has memory");
        let [run, _wall] = [take(4), allocate(&world, 1, kind)];
        free(&world, run);
        let again = take(4);
        assert_eq!((again.page, again.zero), (run.page, false));
        free(&world, again);
        let start = allocate(&world, 1, kind);
        assert_eq!(start.page, run.page);
        assert!(take(2).zero, "of the three dirty pages, none is at a multiple of four");
        free(&world, start);
        assert_eq!(take(4).page, run.page);
    }
}

#[test]
fn at_most_half_of_a_large_block_is_clean_if_the_rest_is_dirty_and_a_span_is_never_mixed() {
    for (kind, n_dirty, is_mixed) in
        [(Kind::Large, 4, true), (Kind::Large, 5, true), (Kind::Large, 3, false), (Kind::Small, 5, false)]
    {
        let world = world_that_stays_dirty();
        let [dirty, clean, _wall] = [n_dirty, 8 - n_dirty, 1].map(|n| allocate(&world, n, Kind::Large));
        free(&world, clean);
        world.shared.pages.purge();
        free(&world, dirty);
        let block = allocate(&world, 8, kind);
        assert_eq!(block.page == dirty.page, is_mixed, "{n_dirty} of 8 pages are dirty, for a {kind:?} run");
        assert_eq!(block.zero, !is_mixed);
    }
}

/// 80 pages are dirty, 16 in use, and a block of 128 takes 48 clean ones besides: 144 pages, which is 9 MiB.
#[test]
fn the_clean_part_of_a_large_block_counts_against_the_hard_limit() {
    for (limit, fits) in [("9m", true), ("8m", false)] {
        let world = world_that_stays_dirty();
        let [dirty, clean, _wall] = [80, 48, 16].map(|n| allocate(&world, n, Kind::Large));
        free(&world, clean);
        world.shared.pages.purge();
        free(&world, dirty);
        world.set(key::LIMIT_HARD, limit);
        let block = world.shared.pages.allocate(Pages(128), Pages(1), Kind::Large);
        assert_eq!(block.is_some(), fits, "limit_hard={limit}");
    }
}

#[test]
fn a_request_that_cannot_be_served_takes_nothing() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let run = allocate(&world, 10, Kind::Large);
    let before = pages.stats();
    let range = pages.layout().n_pages as u32;
    for (wanted, align) in [(range, 1), (u32::MAX, 1), (1, 1 << 31)] {
        assert!(pages.allocate(Pages(wanted), Pages(align), Kind::Large).is_none(), "{wanted} pages by {align}");
    }
    assert!(take_with_room(&world, range / 4 + 1).is_none());
    assert!(take_with_room(&world, u32::MAX).is_none());
    world.set(key::LIMIT_HARD, "1m");
    assert!(pages.allocate(Pages(16), Pages(1), Kind::Large).is_none());
    assert_eq!(pages.stats(), before);
    world.set(key::LIMIT_HARD, "64m");
    free(&world, run);
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_block_that_grows_steeply_gets_no_room() {
    let world = World::new(4096);
    let room = |held, wanted: u32| {
        world.shared.pages.allocate_with_growth_room(Pages(held).to_bytes(), Pages(wanted).to_bytes())
    };
    assert!(room(16, 18).is_none() && room(16, 32).is_none());
    assert!(room(17, 18).is_some() && room(32, 64).is_some());
}

#[test]
fn a_block_with_room_to_grow_has_free_pages_behind_it() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let run = take_with_room(&world, 5).expect("the fake kernel has memory");
    assert_eq!((run.pages, run.zero), (Pages(5), true));
    let block = OwnedRun::taken(Extent::new(run.page, run.pages));
    assert!(pages.extend(&block, growth::with_growth_room(Pages(5)).unwrap()));
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_block_with_room_to_grow_takes_the_longest_dirty_run_if_that_has_the_room() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let [short, _wall, long, _second] = [24, 1, 30, 1].map(|n| allocate(&world, n, Kind::Large));
    [short, long].into_iter().for_each(|run| free(&world, run));
    let fresh = world.fresh_pages();
    let run = take_with_room(&world, 5).expect("the fake kernel has memory");
    assert_eq!((run.page, run.pages, run.zero), (long.page + Pages(3), Pages(5), false));
    let block = OwnedRun::taken(Extent::new(run.page, run.pages));
    assert!(pages.extend(&block, Pages(20)));
    assert_eq!(world.fresh_pages(), fresh, "what is dirty comes first");
    let second = take_with_room(&world, 13).expect("the fake kernel has memory");
    assert!(second.zero && second.page > long.page, "24 dirty pages are not the room of 13");
    assert_eq!(world.check(), Ok(()));
}

/// What is free behind a block may be its room. Where there is not enough for both, the new one comes first: it is known to grow.
#[test]
fn a_block_with_room_to_grow_leaves_that_of_the_large_block_before_it_as_far_as_there_is_enough() {
    let world = world_that_stays_dirty();
    let before = take_with_room(&world, 9).expect("the fake kernel has memory");
    let block = OwnedRun::taken(Extent::new(before.page, before.pages));
    assert!(world.shared.pages.extend(&block, Pages(34)));
    world.shared.pages.shrink(&block, Pages(4));
    let long = before.page + Pages(4);
    for (pages, left) in [(4, 12), (5, 10), (7, 2)] {
        let run = take_with_room(&world, pages).expect("the fake kernel has memory");
        assert_eq!((run.page, run.zero), (long + Pages(left), false), "{pages}");
        free(&world, run);
    }
}

#[test]
fn blocks_that_grow_side_by_side_have_room() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let blocks = [5, 5, 7, 6].map(|n| {
        let run = take_with_room(&world, n).expect("the fake kernel has memory");
        OwnedRun::taken(Extent::new(run.page, run.pages))
    });
    for block in &blocks {
        let room = growth::with_growth_room(pages.extent(block).pages).unwrap();
        assert!(pages.extend(block, room));
    }
    assert_eq!(world.check(), Ok(()));
}

/// 18 pages were freed, of 20: where the kernel takes them back, a block that is going to grow gets new memory with room.
#[test]
fn memory_that_stays_when_it_is_freed_is_used_again_before_a_block_gets_room_to_grow() {
    for (purge, has_room) in [("dontneed", true), ("free", false)] {
        let world = world_that_stays_dirty();
        world.set(key::PURGE, purge);
        let pages = &world.shared.pages;
        let [first, _wall, second, _other] = [9, 1, 9, 1].map(|n| allocate(&world, n, Kind::Large));
        [first, second].into_iter().for_each(|run| free(&world, run));
        pages.purge();
        let run = take_with_room(&world, 5);
        assert_eq!(run.is_some_and(|run| run.zero), has_room, "purge={purge}");
        assert!(has_room || run.is_none());
        assert_eq!(world.check(), Ok(()));
    }
}

#[test]
fn caches_are_emptied_before_clean_pages_are_taken() {
    let world = world_that_stays_dirty();
    let heap = world.heap();
    for _ in 0..20 {
        crate::testing::free(heap, heap.allocate(10 << 16, 1).start);
    }
    let cached = heap.cache().cached_pages();
    assert_eq!(cached, 10);
    let fresh = world.fresh_pages();
    assert!(!allocate(&world, 9, Kind::Large).zero);
    assert_eq!((heap.cache().cached_pages(), world.fresh_pages()), (0, fresh));
}

/// What is done with the page heap: a run is allocated, of pages, alignment and kind; one is freed; all that is dirty is purged.
#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate(u32, u32, bool),
    Free(usize),
    Purge,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1..24_u32, 0..6_u32, any::<bool>()).prop_map(|(pages, log2, large)| Step::Allocate(pages, 1 << log2, large)),
        6 => (0..20_usize).prop_map(Step::Free),
        1 => Just(Step::Purge),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 10 } else { 60 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 100 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// No page is handed out twice, every run is long and aligned as requested, and what is said to be zero was not used since the last purge.
    #[test]
    fn runs_are_long_aligned_apart_and_zero_as_they_say(steps in steps()) {
        let world = world_that_stays_dirty();
        let pages = &world.shared.pages;
        let (mut runs, mut handed_out) = (Vec::<Run>::new(), HandedOut::default());
        for step in steps {
            match step {
                Step::Allocate(wanted, align, is_large) => {
                    let kind = if is_large { Kind::Large } else { Kind::Small };
                    let run = pages.allocate(Pages(wanted), Pages(align), kind).expect("the fake kernel has memory");
                    prop_assert!(run.pages == Pages(wanted));
                    let first = pages.layout().base.addr() / (1 << 16) + run.page.0 as usize;
                    prop_assert_eq!(first % align as usize, 0);
                    handed_out.add(Extent::new(run.page, run.pages), run.zero)?;
                    runs.push(run);
                }
                Step::Free(at) if at < runs.len() => {
                    let run = runs.swap_remove(at);
                    handed_out.remove(Extent::new(run.page, run.pages));
                    free(&world, run);
                }
                Step::Free(_) => {}
                Step::Purge => {
                    pages.purge();
                    handed_out.note_purge();
                }
            }
            let stats = pages.stats();
            prop_assert_eq!((stats.small_pages + stats.large_pages) as usize, handed_out.n_out());
        }
    }
}

/// Guards by default are behind new blocks, where they cost nothing.
#[test]
fn neither_a_block_with_room_to_grow_nor_one_with_huge_pages_gets_a_guard() {
    let world = world_that_stays_dirty();
    let guard_pages = |world: &World| world.shared.pages.stats().guard_pages;
    assert!(take_with_room(&world, 5).is_some());
    assert_eq!(guard_pages(&world), 0);
    allocate(&world, 5, Kind::Large);
    assert_eq!(guard_pages(&world), 1);
    let world = World::new(4096);
    world.give_huge_pages(2 << 20);
    let block = allocate(&world, 144, Kind::Large);
    assert_eq!((block.pages, guard_pages(&world)), (Pages(160), 0));
    allocate(&world, 5, Kind::Large);
    assert_eq!(guard_pages(&world), 1);
}

/// With huge pages of 2 MiB, 144 pages are rounded up to 160, which is 10 MiB.
#[test]
fn a_block_fits_below_the_hard_limit_if_only_its_rounding_to_huge_pages_does_not() {
    for (limit, got) in [("10m", Some(160)), ("9m", Some(144)), ("8m", None)] {
        let world = World::new(4096);
        world.os().give_huge_pages(2 << 20);
        world.set(key::LIMIT_HARD, limit);
        let run = world.shared.pages.allocate(Pages(144), Pages(1), Kind::Large);
        assert_eq!(run.map(|run| run.pages.0), got, "{limit}");
    }
}
