#![allow(unsafe_code)]
//! The list alone: caches that no thread uses, and runs that are only numbers.
use super::*;
use core::ptr;
use proptest::prelude::*;
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

/// Runs of one length that a cache holds.
const RUNS: usize = 2;

fn cache() -> &'static LargeRunCache {
    Box::leak(Box::new(LargeRunCache::new()))
}

fn permanent(cache: &'static LargeRunCache) -> PermanentCache<'static> {
    // SAFETY: the cache is leaked, so it stays where it is for good.
    unsafe { cache.permanent() }
}

fn run(first: u32, pages: u32) -> Extent {
    Extent::new(PageIndex(first), Pages(pages))
}

/// The caches of a list, each named by its address.
fn listed(list: &CacheList) -> Vec<usize> {
    list.iter().map(|cache| ptr::from_ref(cache).addr()).collect()
}

/// What is done with caches: a run of some pages is freed into one, one is closed, all are closed.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open(usize, u32),
    CloseOne(usize),
    CloseAll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..3_usize, 1..20_u32).prop_map(|(cache, pages)| Step::Open(cache, pages)),
        2 => (0..3_usize).prop_map(Step::CloseOne),
        1 => Just(Step::CloseAll),
    ];
    proptest::collection::vec(step, 1..if cfg!(miri) { 12 } else { 60 })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each run comes out exactly once, from the cache it went into, and the pages of open slots are those of the runs in them.
    #[test]
    fn a_list_has_the_runs_that_were_opened_and_not_closed(steps in steps()) {
        let (mut list, caches) = (CacheList::empty(), [cache(), cache(), cache()]);
        let mut model: [BTreeMap<PageIndex, Pages>; 3] = Default::default();
        for (number, step) in (1..).zip(steps) {
            match step {
                Step::Open(at, pages) => {
                    let has_room = pages <= 16 && model[at].values().filter(|other| other.0 == pages).count() < RUNS;
                    prop_assert_eq!(list.open(permanent(caches[at]), run(number, pages)), has_room);
                    if has_room {
                        model[at].insert(PageIndex(number), Pages(pages));
                    }
                }
                Step::CloseOne(at) => {
                    let mut freed = BTreeSet::new();
                    list.close_one(caches[at], |page| assert!(freed.insert(page), "freed twice"));
                    prop_assert!(freed.into_iter().eq(core::mem::take(&mut model[at]).into_keys()));
                }
                Step::CloseAll => {
                    let mut freed = BTreeSet::new();
                    list.close(Slot::close, |page| assert!(freed.insert(page), "freed twice"));
                    let all: BTreeSet<_> = model.iter_mut().flat_map(|runs| core::mem::take(runs).into_keys()).collect();
                    prop_assert_eq!(freed, all);
                    prop_assert!(list.is_empty());
                }
            }
            let pages = model.iter().flat_map(BTreeMap::values).fold(Pages::ZERO, |sum, pages| sum + *pages);
            prop_assert_eq!(list.open_pages(), pages);
            let listed = listed(&list);
            prop_assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len(), "a cache is listed twice");
            for (cache, runs) in caches.into_iter().zip(&model) {
                prop_assert!(runs.is_empty() || listed.contains(&ptr::from_ref(cache).addr()));
                prop_assert_eq!(cache.is_listed(), listed.contains(&ptr::from_ref(cache).addr()));
            }
        }
    }
}

#[test]
fn a_slot_that_is_idle_twice_in_a_row_is_closed_and_its_cache_leaves_the_list() {
    let (mut list, used, unused) = (CacheList::empty(), cache(), cache());
    assert!(list.open(permanent(used), run(10, 3)) && list.open(permanent(unused), run(20, 5)));
    let mut freed = Vec::new();
    list.close(Slot::close_if_idle, |page| freed.push(page));
    assert_eq!((freed.as_slice(), list.open_pages()), (&[][..], Pages(8)), "they were just opened");
    let slot = used.slots().map(|(_, slot)| slot).find(|slot| !slot.is_closed()).unwrap();
    assert!(slot.take() == Some(10) && slot.put(10));
    list.close(Slot::close_if_idle, |page| freed.push(page));
    assert_eq!((freed.as_slice(), list.open_pages()), (&[PageIndex(20)][..], Pages(3)));
    assert_eq!(listed(&list), [ptr::from_ref(used).addr()]);
}

/// The thread has the block in use; the slot waits for it.
#[test]
fn a_slot_whose_run_is_in_use_counts_until_it_is_closed_and_frees_nothing() {
    let (mut list, cache) = (CacheList::empty(), cache());
    assert!(list.open(permanent(cache), run(10, 3)));
    let slot = cache.slots().map(|(_, slot)| slot).find(|slot| !slot.is_closed()).unwrap();
    assert_eq!((slot.take(), list.open_pages()), (Some(10), Pages(3)));
    list.close(Slot::close, |page| panic!("{page} is in use"));
    assert_eq!((list.open_pages(), list.is_empty()), (Pages::ZERO, true));
}

#[test]
fn the_time_of_the_last_check_is_kept() {
    let mut list = CacheList::empty();
    list.note_check(Moment(77));
    assert_eq!(list.checked(), Moment(77));
}
