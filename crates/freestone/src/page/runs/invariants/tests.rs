//! Each invariant, broken in the records: nothing else is changed.
use super::*;
use crate::page::runs::FreeState;
use crate::page::runs::tests::clean_runs;
use crate::testing::RANGE_BYTES;
use freestone_os::fake::Fake;

/// Runs with every kind of free run, and where each is.
struct Sample {
    runs: Runs,
    old: PageIndex,
    young: PageIndex,
    stuck: PageIndex,
    purging: PageIndex,
    reserved: PageIndex,
    clean: PageIndex,
    block: PageIndex,
    guard: PageIndex,
}

impl Sample {
    fn new(os: &Fake) -> Self {
        let mut runs = clean_runs(os, Pages(100));
        let mut take = |pages| {
            let page = runs.find_clean(Pages(20)).unwrap();
            runs.take_aligned(page, Pages(pages), Pages(1), Kind::Large).0
        };
        let [old, _, young, _, stuck, _, purging, _, block] = [3, 1, 4, 1, 5, 1, 6, 1, 7].map(&mut take);
        let guard = block.end();
        runs.take_guard(guard);
        runs.close_guard(guard, PageAccess::Marked);
        for (run, since) in [(old, 1), (young, 2), (purging, 3)] {
            runs.free(run.first, FreeState::dirty(Moment(since), false));
        }
        runs.free(stuck.first, FreeState { kind: Kind::Stuck, ..FreeState::CLEAN });
        let _ = runs.begin_purge(purging);
        let (reserved, clean) = (guard + Pages(1), guard + Pages(4));
        runs.turn(Extent::new(reserved, Pages(3)), FreeState::RESERVED);
        let stuck = stuck.first;
        Self {
            runs,
            old: old.first,
            young: young.first,
            stuck,
            purging: purging.first,
            reserved,
            clean,
            block: block.first,
            guard,
        }
    }
}

/// Breaks an invariant.
type Spoil<'a> = &'a dyn Fn(&mut Sample);

#[test]
fn each_invariant_that_does_not_hold_is_named() {
    let set_kind = |sample: &Sample, page, kind| sample.runs.record(page).kind.set(kind);
    let close = |sample: &Sample, page| sample.runs.record(page).access.set(PageAccess::Denied);
    let count = |sample: &mut Sample, kind| sample.runs.counts.add(kind, Pages(1));
    let cases: [(&str, &[Spoil<'_>]); 8] = [
        (
            "a set has runs of its kind",
            &[
                &|sample| set_kind(sample, sample.old, Kind::Clean),
                &|sample| set_kind(sample, sample.stuck, Kind::Reserved),
                &|sample| set_kind(sample, sample.clean, Kind::Dirty),
                &|sample| set_kind(sample, sample.reserved, Kind::Clean),
            ],
        ),
        (
            "the sets have all free pages that can be accessed",
            &[
                &|sample| count(sample, Kind::Dirty),
                &|sample| count(sample, Kind::Stuck),
                &|sample| count(sample, Kind::Clean),
                &|sample| count(sample, Kind::Reserved),
            ],
        ),
        ("the list of runs being purged has no others", &[&|sample| set_kind(sample, sample.purging, Kind::Dirty)]),
        (
            "a guard is one page without access",
            &[&|sample| sample.runs.record(sample.guard).access.set(PageAccess::Open), &|sample| {
                sample.runs.record(sample.guard).pages.set(Pages(2));
            }],
        ),
        ("a guard is beside a run that is in use", &[&|sample| set_kind(sample, sample.block, Kind::Clean)]),
        (
            "a free run's record says whether there may be guards in it",
            &[&|sample| close(sample, sample.old + Pages(1)), &|sample| close(sample, sample.clean), &|sample| {
                close(sample, sample.purging + Pages(5))
            }],
        ),
        (
            "no guard is in a run in use, or in one that is not mapped",
            &[&|sample| close(sample, sample.block + Pages(6)), &|sample| close(sample, sample.reserved)],
        ),
        (
            "ages link the dirty runs",
            &[&|sample| set_kind(sample, sample.old, Kind::Stuck), &|sample| {
                sample.runs.record(sample.young).set_older(PageIndex::NONE);
            }],
        ),
    ];
    for (what, spoils) in cases {
        for (nth, spoil) in spoils.iter().enumerate() {
            let os = Fake::new(4096, RANGE_BYTES);
            let mut sample = Sample::new(&os);
            assert_eq!(sample.runs.check_free(), Ok(()));
            spoil(&mut sample);
            assert_eq!(sample.runs.check_free().map_err(|(found, _)| found), Err(what), "{nth}");
        }
    }
}

#[test]
fn ages_are_in_order_and_end_with_the_youngest() {
    let os = Fake::new(4096, RANGE_BYTES);
    let sample = Sample::new(&os);
    let (old, young) = (sample.runs.record(sample.old), sample.runs.record(sample.young));
    old.dirty_since_ms.set(2);
    assert_eq!(sample.runs.check_free(), Ok(()), "they are of one age");
    old.dirty_since_ms.set(3);
    assert_eq!(sample.runs.check_free(), Err(("ages are in order", sample.young)));
    old.dirty_since_ms.set(1);
    old.younger.set(PageIndex::NONE);
    assert_eq!(sample.runs.check_free(), Err(("the youngest run is the last", sample.old)));
    young.set_older(PageIndex::NONE);
    old.younger.set(sample.young);
    assert_eq!(sample.runs.check_free(), Err(("ages link the dirty runs", sample.young)));
}
