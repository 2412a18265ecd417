//! The order of ages over records of a fake kernel, compared with a sorted list.
use super::*;
use crate::page::runs::tests::{clean_runs, clean_runs_in};
use crate::testing::RANGE_BYTES;
use freestone_base::units::Pages;
use freestone_os::fake::Fake;
use proptest::prelude::*;
use std::time::{Duration, Instant};
use std::vec::Vec;

fn in_order(ages: &AgeList, records: &Records) -> Vec<u32> {
    ages.iter(records).map(|page| page.0).collect()
}

/// How long it takes to link as many runs, dirty since the moments that `since` says; every one that is `joined` takes the place of the one before.
fn time_to_link(n: u32, since: impl Fn(u32) -> u32, joined: impl Fn(u32) -> bool) -> Duration {
    const BYTES: usize = 2 << 30;
    let os = Fake::new(4096, BYTES);
    let (runs, mut ages) = (clean_runs_in(&os, BYTES, Pages(n)), AgeList::empty());
    let begin = Instant::now();
    for page in 1..=n {
        if joined(page) {
            ages.remove(&runs.records, PageIndex(page - 1));
        }
        ages.insert(&runs.records, PageIndex(page), Moment(since(page)), None);
    }
    let took = begin.elapsed();
    let n_joined = (1..=n).filter(|&page| joined(page)).count();
    assert_eq!(ages.iter(&runs.records).count(), n as usize - n_joined);
    took
}

#[test]
#[cfg_attr(miri, ignore = "it compares times")]
fn runs_that_come_youngest_first_find_their_places_as_fast_as_any() {
    const N: u32 = 20_000;
    let oldest_first = time_to_link(N, |page| page, |_| false);
    let youngest_first = time_to_link(N, |page| N - page, |_| false);
    let behind_a_younger_one = time_to_link(N, |page| if page == 1 { 2 * N } else { page }, |_| false);
    let joined = time_to_link(N, |page| if page < N / 2 { N + page } else { N - page }, |page| page > N / 2);
    // A walk from the youngest one takes thousands of times as long.
    let most = (oldest_first * 50).max(Duration::from_millis(20));
    let took = [youngest_first, behind_a_younger_one, joined];
    assert!(took.iter().all(|&took| took < most), "{took:?}, oldest first {oldest_first:?}");
}

proptest! {
    #[test]
    fn runs_are_in_the_order_of_their_ages_whatever_is_linked_and_unlinked(
        steps in prop::collection::vec((1_u32..40, 0_u32..30, any::<bool>()), 1..200),
    ) {
        let os = Fake::new(4096, RANGE_BYTES);
        let (runs, mut ages) = (clean_runs(&os, Pages(40)), AgeList::empty());
        let records = &runs.records;
        let mut model: Vec<(u32, u32)> = Vec::new();
        for (page, since, is_known) in steps {
            let held = model.iter().position(|&(other, _)| other == page);
            if let Some(at) = held {
                ages.remove(records, PageIndex(page));
                model.remove(at);
            } else {
                let at = model.partition_point(|&(_, other)| other <= since);
                let older = at.checked_sub(1).map_or(PageIndex::NONE, |before| PageIndex(model[before].0));
                ages.insert(records, PageIndex(page), Moment(since), is_known.then_some(older));
                model.insert(at, (page, since));
            }
            let pages: Vec<u32> = model.iter().map(|&(page, _)| page).collect();
            prop_assert_eq!(in_order(&ages, records), pages);
            prop_assert_eq!(ages.youngest().map(|page| page.0), model.last().map(|&(page, _)| page));
        }
    }
}
