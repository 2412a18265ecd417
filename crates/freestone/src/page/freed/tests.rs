//! Freed runs: over the fake kernel, through whole heaps.
use super::*;
use crate::config::key;
use crate::page::tests::{take_span, take_with_room, world_that_stays_dirty};
use crate::testing::{World, fill, free, is_filled};
use crate::thread::heap::own::Own;
use freestone_base::units::PAGE_BYTES;
use freestone_os::fake::Fake;
use freestone_testkit::ops::SplitMix;
use std::vec::Vec;

mod lengths;

/// Pages in the lists.
fn listed(world: &World) -> u32 {
    world.shared.pages.freed_pages().0
}

/// Bytes handed out without memory behind them.
fn fresh(world: &World) -> u64 {
    world.shared.pages.stats().fresh_bytes
}

/// Blocks of `pages` each.
fn blocks(heap: Own<'_, Fake>, pages: usize, n: usize) -> Vec<*mut u8> {
    (0..n).map(|_| heap.allocate(pages * PAGE_BYTES, 1).start).collect()
}

/// A world in which the options alone bound what may stay: they ask for a byte more than by default.
fn world_of_options() -> World {
    let world = World::new(4096);
    world.set(key::DIRTY_MAX, "16777217");
    world
}

/// A heap that has freed `n` blocks of `pages` each, all but the first into a list: the first free sets how much may be there. Returns the last of them.
fn with_listed(world: &World, pages: usize, n: usize) -> (Own<'_, Fake>, *mut u8) {
    world.spend_early_purges();
    let heap = world.heap();
    let first = heap.allocate(PAGE_BYTES, 1).start;
    let blocks = blocks(heap, pages, n);
    free(heap, first);
    blocks.iter().for_each(|&block| free(heap, block));
    assert_eq!(listed(world) as usize, n * pages, "not all are listed");
    (heap, blocks[n - 1])
}

#[test]
fn the_next_block_of_the_length_takes_the_run_in_whatever_heap() {
    let world = world_that_stays_dirty();
    let (_, block) = with_listed(&world, 3, 2);
    let (other, before) = (world.heap(), world.shared.pages.stats());
    fill(block, 0xA5, 1);
    let again = other.allocate(3 * PAGE_BYTES - 5, 16);
    assert!(again.start == block && !again.zero);
    assert_eq!((listed(&world), other.usable_bytes(block)), (3, Some(3 * PAGE_BYTES)));
    assert_eq!(world.shared.pages.stats(), before, "the page heap was not asked");
    world.check().unwrap();
}

#[test]
fn a_second_free_of_a_listed_block_is_seen_by_every_heap() {
    let world = world_that_stays_dirty().ignoring_misuse();
    let ((heap, block), other) = (with_listed(&world, 2, 2), world.heap());
    for wrong in [heap, other] {
        free(wrong, block);
        assert_eq!((listed(&world), wrong.usable_bytes(block)), (4, None));
    }
    world.check().unwrap();
}

#[test]
fn who_holds_the_lock_knows_how_much_is_listed() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let span = take_span(&world);
    with_listed(&world, 3, 5);
    pages.free(span);
    let mut state = pages.lock_beside_emptied();
    assert_eq!(state.listed, Pages(15 + 1));
    pages.free_emptied(&mut state);
    assert_eq!(state.listed, Pages(15));
    let _ = pages.empty_freed(&mut state);
    assert_eq!(state.listed, Pages::ZERO);
}

/// No page comes from the kernel while a list has one that would do: for large blocks, for spans, and for blocks that are going to grow.
#[test]
fn listed_runs_are_used_before_clean_memory() {
    type Takes = fn(&World, Own<'_, Fake>) -> usize;
    let takes: [(&str, Takes); 3] = [
        ("large", |_, heap| heap.allocate(9 * PAGE_BYTES, 1).start.addr()),
        ("small", |_, heap| heap.allocate(24, 1).start.addr()),
        ("grows", |world, _| {
            let run = take_with_room(world, 2).expect("the fake kernel has memory");
            world.shared.pages.layout().page_start(run.page).addr()
        }),
    ];
    for (name, take) in takes {
        let world = world_that_stays_dirty();
        // Among few heaps the first span of a class would take clean memory.
        (0..4).for_each(|_| _ = world.heap());
        let (_, last) = with_listed(&world, 3, 4);
        // It takes what the first free made dirty.
        let _rest = world.heap().allocate(PAGE_BYTES, 1).start;
        let before = fresh(&world);
        let taken = take(&world, world.heap());
        assert!(taken != 0 && taken.abs_diff(last.addr()) < 13 * PAGE_BYTES, "{name}");
        assert_eq!(fresh(&world), before, "{name}");
        world.check().unwrap();
    }
}

#[test]
fn each_function_that_purges_empties_the_lists() {
    type Empties = fn(&World, Own<'_, Fake>);
    let empties: [(&str, Empties); 5] = [
        ("purge", |world, _| assert!(world.shared.pages.purge() > 0)),
        ("fork", |world, _| world.shared.pages.adopt_purging_in_child(true)),
        ("limit", |world, heap| {
            world.set(key::LIMIT, "1m");
            assert!(!heap.allocate(40 * PAGE_BYTES, 1).start.is_null());
        }),
        // The block fits, but not beside half of what was listed.
        ("hard limit", |world, heap| {
            world.set(key::LIMIT_HARD, "2816k");
            assert!(!heap.allocate(40 * PAGE_BYTES, 1).start.is_null());
        }),
        ("sleep", |world, _| world.shared.pages.sleep(world.shared.pages.wakes(), None, || false)),
    ];
    for (name, empty) in empties {
        let world = world_of_options();
        let (heap, _) = with_listed(&world, 4, 6);
        empty(&world, heap);
        assert_eq!(listed(&world), 0, "{name}");
        world.check().unwrap();
    }
}

#[test]
fn what_is_listed_is_as_old_as_its_free_and_goes_back_without_another_call_of_the_program() {
    let world = World::new(4096);
    let _ = with_listed(&world, 3, 4);
    let mut waited_ms = 0;
    // As the background thread does.
    while world.shared.pages.purge_due_now() {
        world.os().advance_ms(250);
        waited_ms += 250;
        assert!(waited_ms <= 1000, "{waited_ms} ms, and still not given back");
    }
    assert_eq!((listed(&world), world.shared.pages.stats().dirty_pages), (0, 0));
    assert_eq!(world.os().purged_bytes(), 13 << 16);
}

/// A program of one thread has no background thread: its frees purge what has expired, though each finds its list.
#[test]
fn frees_that_find_room_in_lists_purge_what_has_expired() {
    let world = world_of_options();
    let (heap, _) = with_listed(&world, 4, 16);
    for n in 0..12 {
        world.os().advance_ms(100);
        blocks(heap, 1 + n % 3, 1).into_iter().for_each(|block| free(heap, block));
    }
    assert!(world.os().purged_bytes() >= 4 << 20, "4 MiB are older than the decay time");
    world.check().unwrap();
}

/// The decay time is a second.
#[test]
fn lists_are_emptied_once_in_a_quarter_of_the_decay_time() {
    let world = world_of_options();
    let (heap, _) = with_listed(&world, 4, 6);
    let held = blocks(heap, 3, 3);
    world.os().advance_ms(250);
    for (block, n_listed) in held.into_iter().zip([0, 3, 6]) {
        free(heap, block);
        assert_eq!(listed(&world), n_listed);
    }
    world.check().unwrap();
}

#[test]
fn what_a_thread_was_about_to_list_at_a_fork_does_not_count_in_the_child() {
    let world = world_that_stays_dirty();
    let _ = with_listed(&world, 4, 2);
    assert!(world.shared.pages.freed.make_room(Pages(3)));
    assert_eq!(listed(&world), 2 * 4 + 3);
    world.shared.pages.adopt_purging_in_child(true);
    assert_eq!(listed(&world), 0);
    world.check().unwrap();
}

#[test]
fn nothing_is_listed_where_nothing_may_stay_or_that_is_too_long() {
    for (option, value) in [(key::DIRTY_MAX, "0"), (key::DECAY_MS, "0"), (key::DIRTY_MAX, "1g")] {
        let world = World::new(4096);
        world.set(option, value);
        world.spend_early_purges();
        let heap = world.heap();
        let held: Vec<_> = [1, 16, 17].into_iter().flat_map(|pages| blocks(heap, pages, 5)).collect();
        held.into_iter().for_each(|block| free(heap, block));
        let expected = if value == "0" { 0 } else { 5 * 16 + 4 };
        assert_eq!(listed(&world), expected, "{value}");
        world.check().unwrap();
    }
}

/// What finds no room waits until the lock is next taken: a mass of frees takes it once for 4 MiB.
#[test]
fn frees_beyond_the_bound_take_the_lock_for_many() {
    let world = world_of_options();
    world.spend_early_purges();
    let heap = world.heap();
    let held = blocks(heap, 4, 78);
    let mut most = 0;
    for (n, block) in (1..).zip(held) {
        free(heap, block);
        most = most.max(listed(&world));
        assert!(listed(&world) <= 256 - 4, "{n}: with what is dirty, more than the bound is listed");
    }
    assert_eq!(most, 256 - 4);
    let stats = world.shared.pages.stats();
    assert_eq!(stats.dirty_pages + u64::from(listed(&world)), 4 * 78, "all are free");
    assert_eq!(stats.large_pages, u64::from(listed(&world)));
    world.check().unwrap();
}

#[test]
fn explicit_and_watched_heaps_share_no_runs() {
    let world = world_that_stays_dirty();
    let long = world.heap().allocate(20 * PAGE_BYTES, 1).start;
    let (heap, block) = with_listed(&world, 2, 1);
    // What the explicit heap takes.
    free(heap, long);
    let explicit = world.explicit_heap();
    let held = blocks(explicit.enter().own(), 2, 3);
    assert!(!held.contains(&block) && listed(&world) == 2);
    held.into_iter().for_each(|block| free(explicit.enter().own(), block));
    assert_eq!(listed(&world), 2);
    world.destroy(explicit);
    world.check().unwrap();
}

#[test]
fn listed_runs_count_as_cached_and_neither_as_live_nor_twice() {
    let world = world_that_stays_dirty();
    let live = |world: &World| world.shared.usage.peak_live_bytes();
    let (heap, _) = with_listed(&world, 4, 4);
    let peak = live(&world);
    let other = world.heap();
    blocks(other, 4, 4).into_iter().for_each(|block| free(other, block));
    assert_eq!(
        live(&world),
        peak,
        "they are live in the heap that took them, and no longer in the one that freed them"
    );
    let (puts, takes) = [heap, other]
        .map(|own| own.cache().puts_and_takes())
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!((puts, takes), (9, 4), "the first was freed without the lock as well");
    let stats = world.shared.pages.stats();
    assert_eq!(stats.large_allocs + takes, stats.large_frees + puts);
}

/// The record of a run that is used again, then as a span, then as another run, is read late by a thread that wanted to take it: here, threads that do nothing
/// else.
#[test]
fn threads_that_free_and_allocate_blocks_of_few_lengths_never_have_the_same_run() {
    let world = World::new(4096);
    let n = if cfg!(miri) { 20 } else { 30_000 };
    std::thread::scope(|scope| {
        for thread in 1..4_u8 {
            let world = &world;
            scope.spawn(move || {
                let (heap, mut random) = (world.heap(), SplitMix(u64::from(thread)));
                let mut held: Vec<(*mut u8, usize)> = Vec::new();
                for turn in 0..n {
                    if held.len() > 4 || (!held.is_empty() && random.below(2) == 0) {
                        let (block, size) = held.swap_remove(random.below(held.len()));
                        assert!(is_filled(block, thread, 1) && is_filled(block.wrapping_add(size - 1), thread, 1));
                        free(heap, block);
                    } else {
                        let size = (1 + random.below(3)) * PAGE_BYTES;
                        let block = heap.allocate(size, 1).start;
                        fill(block, thread, 1);
                        fill(block.wrapping_add(size - 1), thread, 1);
                        held.push((block, size));
                    }
                    if turn % 64 == 0 {
                        world.shared.pages.purge_due_now();
                    }
                }
                held.into_iter().for_each(|(block, _)| free(heap, block));
            });
        }
    });
    world.check().unwrap();
}

#[test]
fn a_listed_run_that_is_no_longer_one_is_a_broken_invariant() {
    let world = world_that_stays_dirty();
    let (_, block) = with_listed(&world, 3, 1);
    let page = world.shared.pages.view().page_of(block.addr()).unwrap();
    let broken = |spoil: &dyn Fn(&State)| {
        world.shared.pages.inspect(|state| {
            assert_eq!(world.shared.pages.check_listed(state), Ok(()));
            spoil(state);
            world.shared.pages.check_listed(state).expect_err("it was not seen").0
        })
    };
    let set = |state: &State, entry| state.runs.set_entries(Extent::new(page, Pages(1)), entry);
    assert_eq!(broken(&|state| set(state, Entry::LARGE)), "what is in a list of freed runs is one");
    world.shared.pages.inspect(|state| set(state, Entry::CACHED));
    assert_eq!(broken(&|state| state.runs.record(page).pages.set(Pages(2))), "a freed run is as long as its list says");
    world.shared.pages.inspect(|state| state.runs.record(page).pages.set(Pages(3)));
    assert_eq!(
        broken(&|_| assert!(world.shared.pages.freed.make_room(Pages(1)))),
        "the count of freed pages is that of the lists"
    );
}

#[test]
fn a_block_for_which_nothing_listed_is_long_enough_leaves_half_of_what_was_listed() {
    let world = world_that_stays_dirty();
    world.spend_early_purges();
    let heap = world.heap();
    let first = heap.allocate(PAGE_BYTES, 1).start;
    let blocks = blocks(heap, 2, 8);
    free(heap, first);
    // No two of them are neighbours.
    blocks.iter().step_by(2).for_each(|&block| free(heap, block));
    let before = fresh(&world);
    assert_eq!(listed(&world), 4 * 2);
    assert!(!heap.allocate(9 * PAGE_BYTES, 1).start.is_null());
    assert_eq!((listed(&world), fresh(&world) - before), (2 * 2, 9 * PAGE_BYTES as u64));
    world.check().unwrap();
}
