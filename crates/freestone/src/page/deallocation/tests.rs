#![allow(unsafe_code)]
use super::*;
use crate::config::key;
use crate::page::allocation::Run;
use crate::page::large_cache::LargeRunCache;
use crate::page::runs::Extent;
use crate::span::{Entry, Kind};
use crate::testing::World;
use freestone_base::units::Pages;
use std::boxed::Box;

/// A world in which dirty memory stays.
fn world() -> World {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "1g");
    world.spend_early_purges();
    world
}

fn allocate(world: &World, pages: u32, kind: Kind) -> Run {
    world.shared.pages.allocate(Pages(pages), Pages(1), kind).expect("the fake kernel has memory")
}

/// A run that the test gives up.
fn owned(run: Run) -> OwnedRun {
    OwnedRun::taken(Extent::new(run.page, run.pages))
}

#[test]
fn a_freed_run_of_any_kind_is_dirty_and_in_use_no_more() {
    for kind in [Kind::Large, Kind::Small] {
        let world = world();
        let pages = &world.shared.pages;
        let before = pages.stats();
        let [run, wall] = [5, 1].map(|n| allocate(&world, n, kind));
        pages.inspect(|state| state.runs.set_entries(Extent::new(run.page, run.pages), Entry::LARGE));
        pages.free(owned(run));
        let stats = pages.stats();
        assert_eq!((stats.dirty_pages, stats.small_pages + stats.large_pages), (5, before.small_pages + 1));
        assert_eq!(stats.large_frees - before.large_frees, u64::from(kind == Kind::Large));
        pages.inspect(|state| {
            for at in 0..5 {
                let entry = state.runs.entry(run.page + Pages(at));
                // The first page of a large block is the one that has an entry.
                assert!(entry == Entry::NONE || (kind == Kind::Large && at > 0), "page {at} of a {kind:?} run");
            }
        });
        pages.free(owned(wall));
        assert_eq!(world.check(), Ok(()));
    }
}

#[test]
fn a_free_purges_what_is_due() {
    let world = world();
    let pages = &world.shared.pages;
    let [old, _wall, young] = [8, 1, 4].map(|n| allocate(&world, n, Kind::Large));
    pages.free(owned(old));
    world.os().advance_ms(10_000);
    assert_eq!(pages.stats().dirty_pages, 8, "time alone calls nothing");
    pages.free(owned(young));
    assert_eq!((pages.stats().dirty_pages, pages.stats().purged_bytes), (4, 8 << 16));
}

#[test]
fn a_run_is_cached_only_with_a_cache_that_has_room() {
    let world = world();
    let pages = &world.shared.pages;
    let cache: &'static LargeRunCache = Box::leak(Box::new(LargeRunCache::new()));
    // SAFETY: the cache is leaked.
    let permanent = || Some(unsafe { cache.permanent() });
    assert!(!pages.free_or_cache(owned(allocate(&world, 3, Kind::Large)), None), "there is no cache");
    let runs = [3, 3, 3, 17].map(|n| allocate(&world, n, Kind::Large));
    let cached = runs.map(|run| pages.free_or_cache(owned(run), permanent()));
    assert_eq!(cached, [true, true, false, false], "two of a length are cached, and none of 17 pages");
    assert_eq!(cache.cached_pages(), 6);
    assert_eq!((pages.stats().dirty_pages, pages.stats().large_pages), (20, 6), "a cached run is in use");
    pages.take_back(cache, crate::page::ahead::RunsAhead::NONE);
    assert_eq!((pages.stats().dirty_pages, pages.stats().large_pages), (26, 0));
}
