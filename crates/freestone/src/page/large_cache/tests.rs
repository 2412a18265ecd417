//! The large-run caches: over the fake kernel, through whole heaps.
//!
//! Long because: each way in which a run comes into a cache, stays there and leaves it has a test.
use super::*;
use crate::config::key;
use crate::page::policy::purge_bound::After;
use crate::page::state::State;
use crate::span::Kind;
use crate::testing::{World, free, reallocate, resize_in_place};
use crate::thread::heap::own::Own;
use crate::thread::upkeep;
use freestone_base::units::PAGE_BYTES;
use freestone_os::fake::Fake;
use std::vec::Vec;

mod streams;

const MIB: usize = 1 << 20;

/// Blocks of a length that a thread allocates and frees in turn until the length has a slot.
const UNTIL_CACHED: usize = RETURNS as usize + 2;

/// Pages of the open slots of all caches.
fn open_pages(world: &World) -> u64 {
    world.shared.pages.inspect(|state| u64::from(state.cached_pages().0))
}

/// Allocates and frees a block of `size` `n` times.
fn pairs(heap: Own<'_, Fake>, size: usize, n: usize) {
    for _ in 0..n {
        let block = heap.allocate(size, 1).start;
        assert!(!block.is_null());
        free(heap, block);
    }
}

/// A heap with a block of `size` in its cache, and that block's address.
fn with_one_cached(world: &World, size: usize) -> (Own<'_, Fake>, *mut u8) {
    let heap = world.heap();
    pairs(heap, size, UNTIL_CACHED);
    let block = heap.allocate(size, 1).start;
    free(heap, block);
    assert!(heap.cache().cached_pages() > 0, "nothing is cached");
    (heap, block)
}

#[test]
fn a_block_that_is_allocated_and_freed_in_turn_makes_no_calls_of_the_page_heap() {
    let world = World::new(4096);
    for size in [40_000, 100_000, 500_000, MIB] {
        let (heap, block) = with_one_cached(&world, size);
        let before = (world.shared.pages.stats(), heap.cache().puts_and_takes());
        for _ in 0..100 {
            assert_eq!(heap.allocate(size, 1).start, block);
            free(heap, block);
        }
        assert_eq!(world.shared.pages.stats(), before.0);
        let (puts, takes) = before.1;
        assert_eq!(heap.cache().puts_and_takes(), (puts + 100, takes + 100));
        world.check().unwrap();
    }
}

#[test]
fn lengths_that_are_not_requested_again_and_long_blocks_are_not_cached() {
    let world = World::new(4096);
    let heap = world.heap();
    let blocks: Vec<_> = (1..=16).map(|n| heap.allocate(n * PAGE_BYTES, 1).start).collect();
    blocks.into_iter().for_each(|block| free(heap, block));
    pairs(heap, MIB + 1, 2 * UNTIL_CACHED);
    assert_eq!(open_pages(&world), 0);
    pairs(heap, MIB, UNTIL_CACHED);
    assert_eq!(open_pages(&world), 16);
}

#[test]
fn a_second_free_of_a_cached_block_is_seen_by_every_heap() {
    let world = World::new(4096).ignoring_misuse();
    let ((heap, block), other) = (with_one_cached(&world, 300_000), world.heap());
    let before = (world.shared.pages.stats(), heap.cache().puts_and_takes());
    for wrong in [heap, other] {
        free(wrong, block);
        free(wrong, block.wrapping_add(PAGE_BYTES));
        assert_eq!(wrong.usable_bytes(block), None);
        assert!(reallocate(wrong, block, 100).is_null() && !resize_in_place(wrong, block, MIB));
    }
    assert_eq!((world.shared.pages.stats(), heap.cache().puts_and_takes()), before);
    world.check().unwrap();
    assert_eq!(heap.allocate(300_000, 1).start, block);
}

/// A thread reads the clock before it waits for the lock; another has checked meanwhile.
#[test]
fn a_check_that_another_thread_noted_later_is_not_long_ago() {
    let world = World::new(4096);
    let (_heap, _) = with_one_cached(&world, MIB);
    let (pages, before) = (&world.shared.pages, world.shared.pages.now());
    world.os().advance_ms(4);
    for _ in 0..3 {
        let mut state = pages.lock();
        state.caches.note_check(pages.now());
        pages.freed.note_look(pages.now());
        assert!(!pages.is_time_to_empty(&pages.freed, before));
        drop(pages.purge_due(state, before, After::Other));
    }
    assert!(open_pages(&world) > 0, "a slot was closed after 4 ms");
}

#[test]
fn a_cached_run_is_dirty_for_calloc() {
    let world = World::new(4096);
    let (heap, block) = with_one_cached(&world, 70_000);
    // Allocated as `calloc` does.
    let again = heap.allocate(70_000, 16);
    assert!(again.start == block && !again.zero);
}

#[test]
fn what_a_sleeping_thread_has_cached_is_purged_when_it_is_old() {
    for size in [40_000, MIB] {
        let world = World::new(4096);
        let (heap, _) = with_one_cached(&world, size);
        let mut waited_ms = 0;
        // As the background thread does.
        while world.shared.pages.purge_due_now() {
            world.os().advance_ms(250);
            waited_ms += 250;
            world.check().unwrap();
            assert!(waited_ms <= 1500, "{waited_ms} ms, and still not given back");
        }
        assert!(waited_ms >= 500, "given back after {waited_ms} ms");
        assert_eq!((heap.cache().cached_pages(), open_pages(&world)), (0, 0));
        let stats = world.shared.pages.stats();
        assert_eq!((stats.large_pages, stats.dirty_pages), (0, 0));
        // And after a decay time the length has to come back again before it is cached.
        world.os().advance_ms(1000);
        pairs(heap, size, 1);
        assert_eq!(open_pages(&world), 0);
    }
}

#[test]
fn a_slot_that_is_used_stays_open_however_long() {
    let world = World::new(4096);
    let (heap, _) = with_one_cached(&world, 200_000);
    for _ in 0..40 {
        world.os().advance_ms(100);
        world.shared.pages.purge_due_now();
        pairs(heap, 200_000, 1);
    }
    assert_eq!(open_pages(&world), 4);
    // With the block out for long, its slot closes.
    let block = heap.allocate(200_000, 1).start;
    for _ in 0..3 {
        world.os().advance_ms(250);
        world.shared.pages.purge_due_now();
    }
    assert_eq!(open_pages(&world), 0);
    free(heap, block);
    world.check().unwrap();
}

/// Frees that never come to the page heap purge what others left dirty, too.
#[test]
fn pairs_of_malloc_and_free_alone_purge_what_has_expired() {
    let world = World::new(4096);
    let heap = world.heap();
    let old = heap.allocate(8 * MIB, 1).start;
    pairs(heap, 100_000, 3);
    free(heap, old);
    for _ in 0..12 {
        world.os().advance_ms(100);
        pairs(heap, 100_000, 1);
    }
    assert!(world.os().purged_bytes() >= 8 * MIB as u64, "8 MiB are older than the decay time");
    world.check().unwrap();
}

#[test]
fn each_function_that_empties_caches_empties_the_large_run_cache() {
    type Empties = fn(&World, Own<'_, Fake>);
    let empties: [(&str, Empties); 5] = [
        ("purge", |world, _| assert!(world.shared.pages.purge() > 0)),
        ("flush", |_, heap| upkeep::flush_all(heap)),
        ("end", |world, heap| world.end(heap)),
        ("fork", |world, _| {
            let survivor = world.heap();
            world.orphan_others(survivor)
        }),
        ("limit", |world, _| {
            world.set(key::LIMIT, "1m");
            pairs(world.heap(), 17 * PAGE_BYTES, 1);
            assert!(world.shared.pages.is_pressed());
        }),
    ];
    for (name, empty) in empties {
        let world = World::new(4096);
        let (heap, _) = with_one_cached(&world, 300_000);
        empty(&world, heap);
        assert_eq!((heap.cache().cached_pages(), open_pages(&world)), (0, 0), "{name}");
        assert_eq!(world.shared.pages.stats().large_pages, 0, "{name}");
        world.check().unwrap();
    }
}

/// The soft limit counts cached runs only until their memory is needed: no false pressure is reported.
#[test]
fn caches_are_emptied_before_a_limit_counts_as_passed() {
    let world = World::new(4096);
    world.set(key::LIMIT, "9m");
    world.set(key::LIMIT_HARD, "9m");
    let (heap, _) = with_one_cached(&world, MIB);
    let other = world.heap();
    let block = other.allocate(8 * MIB, 1).start;
    assert!(!block.is_null() && !world.shared.pages.is_pressed());
    assert_eq!(heap.cache().cached_pages(), 0);
    world.check().unwrap();
}

#[test]
fn cached_and_dirty_memory_obey_the_bound_together() {
    let world = World::new(4096);
    let (n_heaps, rounds, step) = if cfg!(miri) { (2, 1, 7) } else { (12, 6, 1) };
    let heaps: Vec<_> = (0..n_heaps).map(|_| world.heap()).collect();
    let mut most_open = 0;
    // 16 MiB, or what was in use lately: bursts of 18 MiB, and what is cached beside them.
    let bound = 19 * MIB / PAGE_BYTES;
    for _ in 0..rounds {
        for heap in &heaps {
            for n in (1..=16).step_by(step) {
                pairs(*heap, n * PAGE_BYTES, UNTIL_CACHED);
                let n_long = if n == 16 { 6 } else { 0 };
                let blocks: Vec<_> = (0..n_long).map(|_| heap.allocate(3 * MIB, 1).start).collect();
                blocks.into_iter().for_each(|block| free(*heap, block));
                let dirty = world.shared.pages.stats().dirty_pages;
                assert!((dirty + open_pages(&world)) as usize <= bound, "{dirty} and {}", open_pages(&world));
                assert!(open_pages(&world) as usize <= 4 * MIB / PAGE_BYTES);
                most_open = most_open.max(open_pages(&world));
            }
        }
        world.check().unwrap();
    }
    assert!(cfg!(miri) || most_open as usize > 3 * MIB / PAGE_BYTES, "{most_open}: the test does not reach the bound");
    for off in [(key::DIRTY_MAX, "0"), (key::DECAY_MS, "0")] {
        let world = World::new(4096);
        world.set(off.0, off.1);
        pairs(world.heap(), 100_000, 2 * UNTIL_CACHED);
        assert_eq!(open_pages(&world), 0, "nothing is to be cached");
    }
}

#[test]
fn dirty_memory_that_would_pass_the_bound_empties_caches() {
    let world = World::new(4096);
    world.spend_early_purges();
    let heap = world.heap();
    let mut blocks: Vec<_> = (0..6).map(|_| heap.allocate(3 * MIB, 1).start).collect();
    // The first gives the memory that is cached.
    free(heap, blocks.remove(0));
    let _cached = [with_one_cached(&world, MIB), with_one_cached(&world, MIB)];
    assert_eq!(open_pages(&world) as usize, 2 * MIB / PAGE_BYTES);
    blocks.into_iter().for_each(|block| free(heap, block));
    assert_eq!(open_pages(&world), 0);
    assert!(world.shared.pages.stats().dirty_pages as usize <= 16 * MIB / PAGE_BYTES);
    world.check().unwrap();
}

/// No page comes from the kernel while a thread has one in its cache that it does not use.
#[test]
fn cached_runs_are_used_before_clean_memory() {
    for by_another in [false, true] {
        let world = World::new(4096);
        let ((heap, block), other) = (with_one_cached(&world, MIB), world.heap());
        let fresh = world.shared.pages.stats().fresh_bytes;
        let longer = if by_another { other } else { heap }.allocate(700_000, 1).start;
        assert_eq!((longer, world.shared.pages.stats().fresh_bytes), (block, fresh));
        assert_eq!((heap.cache().cached_pages(), open_pages(&world)), (0, 0));
        world.check().unwrap();
    }
}

#[test]
fn explicit_heaps_cache_nothing_and_their_blocks_are_not_cached() {
    let world = World::new(4096);
    let explicit = world.explicit_heap();
    pairs(explicit.enter().own(), 100_000, 2 * UNTIL_CACHED);
    assert_eq!(open_pages(&world), 0);
    let (heap, _) = with_one_cached(&world, 100_000);
    let (puts, _) = heap.cache().puts_and_takes();
    let (listed, own) = (explicit.enter().own().allocate(100_000, 1).start, heap.allocate(100_000, 1).start);
    free(heap, listed);
    assert_eq!((heap.cache().cached_pages(), heap.cache().puts_and_takes().0), (0, puts));
    free(heap, own);
    assert_eq!(heap.cache().puts_and_takes().0, puts + 1);
    world.check().unwrap();
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn the_peak_of_live_memory_does_not_count_cached_runs() {
    let world = World::new(4096);
    let (heap, _) = with_one_cached(&world, MIB);
    let (pages, peak) = (|n: usize| (n * PAGE_BYTES) as u64, || world.shared.usage.peak_live_bytes());
    assert_eq!(peak(), pages(16));
    let other = heap.allocate(2 * MIB, 1).start;
    assert_eq!(peak(), pages(32), "1 MiB is cached, 2 are live");
    let again = heap.allocate(MIB, 1).start;
    assert_eq!(peak(), pages(48), "3 MiB are live");
    free(heap, again);
    assert_eq!(heap.allocate(MIB, 1).start, again);
    free(heap, again);
    free(heap, other);
    let next = world.heap();
    pairs(heap, MIB, 1);
    world.end(heap);
    free(next, next.allocate(3 * MIB, 1).start);
    assert_eq!(peak(), pages(48), "what a dead thread had cached is not live");
}

#[test]
fn cached_runs_are_in_use_for_the_page_heap() {
    let world = World::new(4096);
    let (_, block) = with_one_cached(&world, 100_000);
    world.shared.pages.inspect(|state| {
        let page = world.shared.pages.view().page_of(block.addr()).unwrap();
        let found = (state.runs.record(page).kind.get(), state.runs.entry(page));
        assert_eq!(found, (Kind::Large, Entry::CACHED));
    });
}

#[test]
fn a_cached_run_that_is_no_longer_one_is_a_broken_invariant() {
    let world = World::new(4096);
    let (_, block) = with_one_cached(&world, 100_000);
    let page = world.shared.pages.view().page_of(block.addr()).unwrap();
    let broken = |spoil: &dyn Fn(&State), mend: &dyn Fn(&State)| {
        world.shared.pages.inspect(|state| {
            assert_eq!(state.check_free(), Ok(()));
            spoil(state);
            let found = state.check_free();
            mend(state);
            found.expect_err("it was not seen").0
        })
    };
    let set_kind = |kind| move |state: &State| state.runs.record(page).kind.set(kind);
    let set_entry = |entry| move |state: &State| state.runs.set_entries(Extent::new(page, Pages(1)), entry);
    let set_pages = |pages| move |state: &State| state.runs.record(page).pages.set(Pages(pages));
    let what = "what is in a slot is a cached run";
    assert_eq!(broken(&set_kind(Kind::Purging), &set_kind(Kind::Large)), what);
    assert_eq!(broken(&set_entry(Entry::LARGE), &set_entry(Entry::CACHED)), what);
    assert_eq!(broken(&set_pages(3), &set_pages(2)), "a cached run is as long as its slot says");
}

#[test]
fn open_slots_may_have_their_share_of_the_bound_and_no_page_more() {
    for (dirty_max, expected) in [("4m", 16), ("3m", 0)] {
        let world = World::new(4096);
        world.set(key::DIRTY_MAX, dirty_max);
        pairs(world.heap(), MIB, UNTIL_CACHED + 1);
        assert_eq!(open_pages(&world), expected, "{dirty_max}");
    }
}

#[test]
fn slots_that_are_used_close_if_they_have_more_than_their_share_of_a_lowered_bound() {
    for (dirty_max, expected) in [("4m", 16), ("3m", 0)] {
        let world = World::new(4096);
        world.set(key::DIRTY_MAX, "1g");
        let (heap, _) = with_one_cached(&world, MIB);
        world.set(key::DIRTY_MAX, dirty_max);
        for _ in 0..4 {
            pairs(heap, MIB, 1);
            world.os().advance_ms(250);
            world.shared.pages.purge_due_now();
        }
        assert_eq!(open_pages(&world), expected, "{dirty_max}");
        world.check().unwrap();
    }
}

/// A request for a length, and a free of a block of it. Returns whether it is to get a slot.
fn wanted_and_freed(cache: &LargeRunCache, pages: u32) -> bool {
    cache.note_wanted(Pages(pages));
    cache.note_freed(Pages(pages))
}

#[test]
fn a_length_gets_one_slot_each_time_that_it_came_back_often() {
    let cache = LargeRunCache::new();
    for _ in 0..3 {
        assert!(!cache.note_freed(Pages(7)));
        assert!(!(0..RETURNS).any(|_| wanted_and_freed(&cache, 3)), "the first has not come back");
        assert!(wanted_and_freed(&cache, 3));
    }
    assert!(!(0..RETURNS).any(|_| wanted_and_freed(&cache, 5)));
    cache.tick();
    assert!(!(0..RETURNS).any(|_| wanted_and_freed(&cache, 5)), "the tick forgets");
    assert!(wanted_and_freed(&cache, 5) && !cache.note_freed(Pages(17)));
}

/// What two lengths do that are requested in turn, after frees of either, keeps both from a slot; only blocks that come back at once get one.
#[test]
fn lengths_that_come_and_go_at_random_get_no_slot() {
    let cache = LargeRunCache::new();
    for n in 0..1000_u32 {
        cache.note_wanted(Pages(2 + n % 2));
        assert!(!cache.note_freed(Pages(2 + n / 2 % 2)), "{n}");
    }
    // A block that is requested again without a free in between has not come back.
    assert!(!cache.note_freed(Pages(9)));
    (0..100).for_each(|_| cache.note_wanted(Pages(9)));
    assert!(!cache.note_freed(Pages(9)));
}
