use super::*;
use crate::config::key;
use crate::page::OwnedRun;
use crate::page::tests::{HandedOut, take_run, world_that_stays_dirty};
use crate::testing::{World, free};
use crate::thread::upkeep;
use proptest::prelude::*;
use std::vec::Vec;

fn give_back(world: &World, ahead: &mut RunsAhead) {
    let pages = &world.shared.pages;
    pages.free_ahead(&mut pages.state.lock(), core::mem::replace(ahead, RunsAhead::NONE));
}

#[derive(Clone, Debug)]
enum Step {
    /// Who wants a run, of how many pages, as one of how many, and of which memory.
    Allocate(usize, u32, u32, Prefers),
    Free(usize),
    GiveBack(usize),
    Purge,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pages = prop_oneof![3 => Just(1_u32), 1 => Just(4)];
    let prefers = prop_oneof![3 => Just(Prefers::Dirty), 1 => Just(Prefers::Clean)];
    let step = prop_oneof![
        10 => (0..2_usize, pages, 1..9_u32, prefers).prop_map(|(who, pages, most, prefers)| Step::Allocate(who, pages, most, prefers)),
        6 => (0..20_usize).prop_map(Step::Free),
        1 => (0..2_usize).prop_map(Step::GiveBack),
        1 => Just(Step::Purge),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 15 } else { 80 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two holders of runs ahead: no page is handed out twice, what is said to be zero was not used, dirty memory comes first unless clean memory is
    /// preferred, and runs ahead count as clean, not as in use.
    #[test]
    fn runs_ahead_are_apart_and_come_after_dirty_memory_and_do_not_count_as_in_use(steps in steps()) {
        let world = world_that_stays_dirty();
        let pages = &world.shared.pages;
        let mut ahead = [RunsAhead::NONE, RunsAhead::NONE];
        let (mut runs, mut handed_out, mut peak) = (Vec::<Extent>::new(), HandedOut::default(), 0);
        for step in steps {
            match step {
                Step::Allocate(who, wanted, most, prefers) => {
                    let is_dirty = pages.stats().dirty_pages > 0;
                    let run = pages.allocate_span(&mut ahead[who], Pages(wanted), most, prefers).expect("the fake kernel has memory");
                    if prefers == Prefers::Clean {
                        prop_assert!(run.is_zero(), "clean memory is preferred");
                    } else {
                        prop_assert!(wanted > 1 || run.is_zero() != is_dirty, "dirty memory comes first");
                    }
                    let extent = Extent::new(run.page(), Pages(wanted));
                    prop_assert_eq!(pages.record(&OwnedRun::taken(extent)).n_pages(), Pages(wanted));
                    handed_out.add(extent, run.is_zero())?;
                    runs.push(extent);
                }
                Step::Free(at) if at < runs.len() => {
                    let run = runs.swap_remove(at);
                    handed_out.remove(run);
                    pages.free(OwnedRun::taken(run));
                }
                Step::Free(_) => {}
                Step::GiveBack(who) => give_back(&world, &mut ahead[who]),
                Step::Purge => {
                    pages.purge();
                    handed_out.note_purge();
                }
            }
            let stats = pages.stats();
            prop_assert_eq!(stats.small_pages as usize, handed_out.n_out());
            prop_assert!((stats.fresh_bytes >> 16) as usize >= handed_out.n_used(), "what is used came out fresh once");
            peak = peak.max(stats.small_pages + stats.free_with_memory());
            prop_assert!(stats.peak_pages <= peak, "{} pages were in use or dirty at most, not {}", peak, stats.peak_pages);
            prop_assert_eq!(pages.state.lock().check_free(), Ok(()));
        }
        ahead.iter_mut().for_each(|runs| give_back(&world, runs));
        prop_assert_eq!(pages.state.lock().runs.counts().of(Kind::Small).0 as usize, handed_out.n_out());
    }
}

#[test]
fn nothing_is_taken_ahead_under_a_hard_limit() {
    for (option, value) in [(key::LIMIT_HARD, "64m"), (key::THP, "off")] {
        let world = world_that_stays_dirty();
        world.set(option, value);
        let mut ahead = RunsAhead::NONE;
        assert!(world.shared.pages.allocate_span(&mut ahead, Pages(1), 8, Prefers::Dirty).is_some());
        assert_eq!(ahead.n(), if option == key::LIMIT_HARD { 0 } else { 7 });
        give_back(&world, &mut ahead);
    }
}

#[test]
fn runs_ahead_are_not_used_once_there_is_a_hard_limit_and_count_when_they_are_used() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let mut ahead = RunsAhead::NONE;
    let used = (0..20).filter_map(|_| pages.allocate_span(&mut ahead, Pages(1), 32, Prefers::Dirty)).count();
    assert_eq!((used, ahead.n(), pages.limited_bytes()), (20, 12, 20 << 16));
    assert_eq!(pages.stats().peak_pages, 20);
    world.set(key::LIMIT_HARD, "1280k");
    assert!(pages.allocate_span(&mut ahead, Pages(1), 32, Prefers::Dirty).is_none());
    world.set(key::LIMIT_HARD, "1344k");
    assert!(pages.allocate_span(&mut ahead, Pages(1), 32, Prefers::Clean).is_some());
    assert_eq!((ahead.n(), pages.limited_bytes()), (12, 21 << 16));
    give_back(&world, &mut ahead);
}

#[test]
fn the_peak_that_was_said_stays_once_runs_that_were_ahead_are_free_again() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let mut ahead = RunsAhead::NONE;
    let used: Vec<_> = (0..20).filter_map(|_| pages.allocate_span(&mut ahead, Pages(1), 32, Prefers::Dirty)).collect();
    assert_eq!(pages.stats().peak_pages, 20);
    used.into_iter().for_each(|run| pages.free(OwnedRun::taken(Extent::new(run.page(), Pages(1)))));
    pages.purge();
    assert_eq!((pages.stats().small_pages, pages.stats().peak_pages), (0, 20));
    give_back(&world, &mut ahead);
}

#[test]
fn what_goes_back_unused_did_not_come_out_fresh() {
    let world = world_that_stays_dirty();
    let mut ahead = RunsAhead::NONE;
    assert!(world.shared.pages.allocate_span(&mut ahead, Pages(1), 8, Prefers::Dirty).is_some());
    assert_eq!((ahead.n(), world.shared.pages.stats().fresh_bytes), (7, 1 << 16));
    give_back(&world, &mut ahead);
    assert_eq!((ahead.n(), world.shared.pages.stats().fresh_bytes), (0, 1 << 16));
}

/// One block in many of each burst stays, so that less is clean between the spans that stay than is taken at once.
#[test]
#[cfg_attr(miri, ignore = "frees 160,000 blocks")]
fn bursts_of_which_little_stays_use_the_addresses_between_what_stays() {
    let world = World::new(4096);
    let (heap, pages) = (world.heap(), &world.shared.pages);
    let (mut before, mut stay) = (0, Vec::new());
    for burst in 0..10 {
        let blocks: Vec<_> = (0..16_000).map(|_| heap.allocate(1024, 1).start).collect();
        for (at, block) in blocks.into_iter().enumerate() {
            if at % 2000 == 0 {
                stay.push(block);
            } else {
                free(heap, block);
            }
        }
        upkeep::flush_all(heap);
        pages.purge();
        let high_water = pages.state.lock().runs.high_water().0;
        // A burst has 250 pages, and 8 of them stay.
        assert!(burst == 0 || high_water - before <= 40, "burst {burst} raised {before} pages to {high_water}");
        before = high_water;
    }
    stay.into_iter().for_each(|block| free(heap, block));
    world.check().unwrap();
}

/// Takes all memory, one page at a time.
fn all_memory(world: &World) -> Vec<Extent> {
    world.os().limit_committed(8 << 20);
    let one = || world.shared.pages.allocate(Pages(1), Pages(1), Kind::Large);
    core::iter::from_fn(one).map(|run| Extent::new(run.page, run.pages)).collect()
}

/// Three pages that are apart are all that is left.
#[test]
fn where_there_is_no_room_for_several_runs_one_is_taken_and_none_is_ahead() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let runs = all_memory(&world);
    runs.iter().step_by(2).take(3).for_each(|&run| pages.free(OwnedRun::taken(run)));
    pages.purge();
    let mut ahead = RunsAhead::NONE;
    assert!(pages.allocate_span(&mut ahead, Pages(1), 8, Prefers::Dirty).is_some());
    assert_eq!((ahead.n(), pages.stats().small_pages), (0, 1));
}

#[test]
fn where_no_clean_memory_can_be_had_a_span_of_which_little_may_be_used_takes_dirty_memory() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let runs = all_memory(&world);
    pages.free(OwnedRun::taken(runs[1]));
    let span = pages.allocate_span(&mut { RunsAhead::NONE }, Pages(1), 8, Prefers::Clean);
    assert!(span.is_some_and(|span| span.page() == runs[1].first && !span.is_zero()));
    assert!(pages.allocate_span(&mut { RunsAhead::NONE }, Pages(1), 8, Prefers::Clean).is_none());
}

#[test]
fn a_long_span_of_which_little_may_be_used_takes_new_addresses_before_dirty_memory() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    pages.free(take_run(&world, 4));
    let used = pages.allocate_span(&mut { RunsAhead::NONE }, Pages(4), 1, Prefers::Clean);
    assert!(used.is_some_and(|span| span.is_zero()) && pages.stats().dirty_pages == 4);
}

/// Memory that is dirty comes first, wherever it waits.
#[test]
fn a_freed_run_in_a_list_is_used_before_those_that_were_taken_ahead() {
    let world = world_that_stays_dirty();
    let pages = &world.shared.pages;
    let (mut ahead, block) = (RunsAhead::NONE, take_run(&world, 1));
    let mut next = || pages.allocate_span(&mut ahead, Pages(1), 8, Prefers::Dirty).expect("there is memory").is_zero();
    assert!(next() && next());
    drop(pages.purge_due(pages.lock(), pages.now(), After::Other));
    assert!(pages.list_freed(block).is_ok());
    assert!(!next(), "a clean run, and one is dirty");
}
