use super::*;
use crate::config::key;
use crate::page::Prefers;
use crate::page::ahead::RunsAhead;
use crate::page::emptied::MOST;
use crate::page::page_heap::OwnedRun;
use crate::page::runs::Extent;
use crate::page::tests::{HandedOut, world_that_stays_dirty};
use crate::testing::World;
use freestone_base::units::Pages;
use proptest::prelude::*;
use std::vec::Vec;

fn allocate(world: &World, pages: u32) -> Extent {
    let run = world.shared.pages.allocate_span(&mut { RunsAhead::NONE }, Pages(pages), 1, Prefers::Dirty);
    Extent::new(run.expect("the fake kernel has memory").page(), Pages(pages))
}

fn free(world: &World, run: Extent) {
    world.shared.pages.free(OwnedRun::taken(run));
}

/// Pages that are listed, without taking the lock as the page heap does.
fn listed(world: &World) -> u32 {
    let state = world.shared.pages.state.lock();
    let (small, emptied) = (state.runs.counts().of(Kind::Small), &world.shared.pages.emptied);
    small.0.min(emptied.pages().0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bound is: few pages wait, what waits and what is dirty exceed the bound by little, and whoever looks finds all of them dirty.
    #[test]
    fn few_spans_wait_and_who_takes_the_lock_finds_them_free(
        bound_pages in prop_oneof![Just(0_u32), 1..40_u32, Just(1000)],
        steps in proptest::collection::vec((any::<bool>(), 1..3_u32, 0..100_usize), 1..if cfg!(miri) { 30 } else { 300 }),
    ) {
        let world = world_that_stays_dirty();
        world.set(key::DIRTY_MAX, &std::format!("{}k", bound_pages * 64));
        let (mut runs, mut handed_out, mut most) = (Vec::new(), HandedOut::default(), 0);
        for (frees, pages, at) in steps {
            if frees && !runs.is_empty() {
                let run = runs.swap_remove(at % runs.len());
                handed_out.remove(run);
                free(&world, run);
            } else {
                let run = allocate(&world, pages);
                handed_out.add(run, false)?;
                runs.push(run);
            }
            let waiting = listed(&world);
            prop_assert!(waiting <= MOST.0 + 2, "{waiting} pages wait");
            let dirty = world.shared.pages.state.lock().runs.counts().of(Kind::Dirty).0;
            most = most.max(bound_pages.max(handed_out.n_out() as u32 / 10));
            prop_assert!(dirty + waiting <= most + MOST.0 + 2, "{dirty} are dirty, and {waiting} wait");
            if at % 4 == 0 {
                prop_assert_eq!(world.shared.pages.stats().small_pages as usize, handed_out.n_out());
                prop_assert_eq!(listed(&world), 0);
                prop_assert_eq!(world.shared.pages.state.lock().check_free(), Ok(()));
            }
        }
        runs.into_iter().for_each(|run| free(&world, run));
        prop_assert_eq!(world.shared.pages.stats().small_pages, 0);
        prop_assert_eq!(world.check(), Ok(()));
    }
}

#[test]
fn a_span_that_waits_is_as_old_as_its_free() {
    let world = World::new(4096);
    let runs = [1; 2].map(|pages| allocate(&world, pages));
    world.os().advance_ms(2000);
    // The first free sets how many may wait, and looks for what has expired.
    free(&world, runs[0]);
    free(&world, runs[1]);
    assert_eq!(listed(&world), 1);
    world.os().advance_ms(2000);
    world.shared.pages.purge_due_now();
    assert_eq!((world.shared.pages.stats().dirty_pages, world.shared.pages.stats().purged_bytes), (0, 2 << 16));
}

/// A thread that goes on emptying a span now and then, as the upkeep of a heap does, may make no other call that takes the lock.
#[test]
fn what_has_expired_is_purged_when_another_span_is_emptied_however_few_wait() {
    let world = World::new(4096);
    let runs = [1; 20].map(|pages| allocate(&world, pages));
    for (n, run) in (0..).zip(runs) {
        free(&world, run);
        // Looked at without the lock, which would free what waits.
        let waiting = listed(&world);
        let dirty = world.shared.pages.state.lock().runs.counts().of(Kind::Dirty).0;
        assert!(dirty + waiting <= 4, "{dirty} pages are dirty and {waiting} wait, of {n}");
        world.os().advance_ms(400);
    }
}

#[test]
fn nothing_waits_without_a_decay_time() {
    let world = World::new(4096);
    world.set(key::DECAY_MS, "0");
    for _ in 0..3 {
        let run = allocate(&world, 1);
        free(&world, run);
        assert_eq!(listed(&world), 0);
        assert_eq!(world.shared.pages.state.lock().runs.counts().of(Kind::Dirty), Pages::ZERO);
    }
}

/// Threads that end in turn: each takes the lock to give back what it had ahead, and purges nothing then.
#[test]
fn what_others_have_made_dirty_counts_when_a_span_is_emptied() {
    let world = world_that_stays_dirty();
    world.set(key::DIRTY_MAX, "1m");
    let runs: Vec<_> = (0..1000).map(|_| allocate(&world, 1)).collect();
    for run in runs {
        free(&world, run);
        let _ = world.shared.pages.stats();
        let state = world.shared.pages.state.lock();
        let (dirty, bound) = (state.runs.counts().of(Kind::Dirty), state.dirty_bound(world.shared.settings()));
        assert!(dirty <= bound + Pages(bound.0 / SHARE + 1), "{dirty:?} are dirty, and {bound:?} may be");
    }
}

#[test]
fn a_quarter_of_the_bound_may_wait_where_as_much_as_the_bound_is_dirty() {
    let world = world_that_stays_dirty();
    world.set(key::DIRTY_MAX, "4m");
    let pages = &world.shared.pages;
    let runs: Vec<_> = (0..64).map(|_| allocate(&world, 1)).collect();
    runs.into_iter().for_each(|run| free(&world, run));
    let state = pages.lock();
    let (dirty, bound) = (state.runs.counts().of(Kind::Dirty), state.dirty_bound(world.shared.settings()));
    assert_eq!((dirty, bound), (Pages(64), Pages(64)));
    pages.bound_emptied(&state);
    drop(state);
    assert!(pages.emptied.make_room(Pages(16)) && !pages.emptied.make_room(Pages(1)));
    pages.emptied.subtract(Pages(16));
}

#[test]
fn a_thread_that_frees_spans_takes_the_lock_for_many_at_once() {
    let world = world_that_stays_dirty();
    let runs: Vec<_> = (0..1000).map(|_| allocate(&world, 1)).collect();
    let mut n_taken = 0;
    for run in runs {
        free(&world, run);
        n_taken += u32::from(listed(&world) == 0);
    }
    assert!(n_taken <= 1000 / MOST.0 + 2, "{n_taken}");
}

/// Bytes handed out without memory behind them: a span from the page heap's clean pages counts, one from a list or a dirty run does not.
fn fresh(world: &World) -> u64 {
    world.shared.pages.state.lock().events.fresh_bytes
}

#[test]
fn a_new_span_takes_the_listed_one_of_its_length_that_was_emptied_last_without_the_lock() {
    let world = world_that_stays_dirty();
    let runs = [1, 1, 4, 1, 4].map(|pages| allocate(&world, pages));
    // The first free sets how many may wait.
    runs.into_iter().for_each(|run| free(&world, run));
    let before = fresh(&world);
    assert_eq!(listed(&world), 10);
    let state = world.shared.pages.state.lock();
    assert_eq!([4, 1, 1, 4].map(|pages| allocate(&world, pages)), [4, 3, 1, 2].map(|n| runs[n]), "the lock is held");
    drop(state);
    assert_eq!((listed(&world), fresh(&world)), (0, before));
    assert_eq!(world.shared.pages.state.lock().check_free(), Ok(()));
}

#[test]
fn a_span_of_another_length_is_cut_from_those_that_are_listed_rather_than_from_clean_memory() {
    let world = world_that_stays_dirty();
    let runs = [1; 5].map(|_| allocate(&world, 1));
    runs.into_iter().for_each(|run| free(&world, run));
    let before = fresh(&world);
    assert_eq!(listed(&world), 4);
    let _ = allocate(&world, 4);
    assert_eq!((listed(&world), fresh(&world)), (0, before));
    assert_eq!(world.shared.pages.state.lock().check_free(), Ok(()));
}

#[test]
fn a_span_of_which_little_may_be_used_takes_clean_memory_though_one_is_listed() {
    let world = world_that_stays_dirty();
    let runs = [1; 3].map(|_| allocate(&world, 1));
    // Clean memory, which the last one's row left.
    runs.into_iter().for_each(|run| free(&world, run));
    world.shared.pages.purge();
    let runs = [1; 2].map(|_| allocate(&world, 1));
    runs.into_iter().for_each(|run| free(&world, run));
    let before = fresh(&world);
    let clean = world.shared.pages.allocate_span(&mut { RunsAhead::NONE }, Pages(1), 1, Prefers::Clean);
    assert!(clean.is_some_and(|run| run.is_zero()) && fresh(&world) > before);
    assert_eq!(world.shared.pages.state.lock().check_free(), Ok(()));
}

#[test]
fn what_a_thread_was_about_to_list_at_a_fork_does_not_count_in_the_child() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    assert!(!pages.emptied.count(Pages(3)));
    // The thread that forked was about to, when a signal handler interrupted it.
    pages.adopt_purging_in_child(false);
    assert_eq!(pages.emptied.pages(), Pages(3));
    pages.adopt_purging_in_child(true);
    assert_eq!(pages.emptied.pages(), Pages::ZERO);
}
