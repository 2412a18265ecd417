//! Runs alone: bookkeeping over the records of a fake kernel, compared with a plain list of each page's kind.
use super::*;
use crate::testing::RANGE_BYTES;
use freestone_base::units::Moment;
use freestone_os::fake::Fake;
use proptest::prelude::*;
use std::vec::Vec;

const N_PAGES: u32 = 200;

/// Runs with `N_PAGES` clean pages from page 1 on.
fn runs(os: &Fake) -> Runs {
    clean_runs(os, Pages(N_PAGES))
}

/// Runs with so many clean pages from page 1 on.
pub(super) fn clean_runs(os: &Fake, pages: Pages) -> Runs {
    clean_runs_in(os, RANGE_BYTES, pages)
}

/// As [`clean_runs`], in a range of so many bytes.
pub(super) fn clean_runs_in(os: &Fake, range_bytes: usize, pages: Pages) -> Runs {
    let base = os.propose_range(range_bytes, 0).unwrap();
    let mut runs = Runs::empty();
    runs.begin(MetadataArrays::begin(os, Layout::new(base, range_bytes, os.os_page_bytes(), 0).unwrap()).unwrap());
    runs.extend_metadata(os, pages).unwrap();
    runs.add(pages, FreeState::CLEAN);
    runs
}

fn extent(first: u32, pages: u32) -> Extent {
    Extent::new(PageIndex(first), Pages(pages))
}

/// The kind of each page according to the runs.
fn kinds(runs: &Runs) -> Vec<Kind> {
    let kinds: Vec<_> =
        runs.iter().flat_map(|(run, record)| std::iter::repeat_n(record.kind.get(), run.pages.0 as usize)).collect();
    assert_eq!(kinds.len(), N_PAGES as usize, "the runs reach to the high-water mark");
    kinds
}

fn take(runs: &mut Runs, pages: u32, kind: Kind) -> Extent {
    let page = runs.find_clean(Pages(pages)).unwrap();
    runs.take_aligned(page, Pages(pages), Pages(1), kind).0
}

fn dirty(since: u32) -> FreeState {
    FreeState::dirty(Moment(since), false)
}

#[test]
fn a_page_that_was_never_used_has_no_record_and_no_entry() {
    let os = Fake::new(4096, RANGE_BYTES);
    for runs in [Runs::empty(), runs(&os)] {
        let beyond = runs.high_water();
        assert_eq!((runs.record(beyond).kind.get(), runs.entry(beyond)), (Kind::None, Entry::NONE));
        runs.set_entries(Extent::new(beyond, Pages(1)), Entry::LARGE);
        assert_eq!(runs.entry(beyond), Entry::NONE);
    }
}

#[test]
fn free_neighbours_of_a_kind_become_one_run_with_the_age_of_the_largest_part() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [old, young, wall] = [10, 3, 1].map(|pages| take(&mut runs, pages, Kind::Large));
    runs.free(old.first, dirty(5));
    runs.free(young.first, dirty(9));
    assert_eq!(runs.oldest_dirty(), Some(extent(old.first.0, 13)));
    assert_eq!(runs.record(old.first).dirty_since(), Moment(5));
    assert_eq!(runs.record(wall.first).kind.get(), Kind::Large);
    runs.check_free().unwrap();
}

#[test]
fn a_free_run_is_huge_if_a_part_of_it_is() {
    for huge in [[true, false, false], [false, true, false], [false, false, true], [false; 3]] {
        let os = Fake::new(4096, RANGE_BYTES);
        let mut runs = runs(&os);
        let parts = [(); 3].map(|()| take(&mut runs, 4, Kind::Large));
        take(&mut runs, 1, Kind::Large);
        for at in [0, 2, 1] {
            runs.free(parts[at].first, FreeState::dirty(Moment(1), huge[at]));
        }
        assert_eq!(runs.run_at(parts[0].first).pages, Pages(12));
        assert_eq!(runs.record(parts[0].first).is_huge.get(), huge.contains(&true), "{huge:?}");
    }
}

#[test]
fn dirty_runs_are_linked_by_age_however_they_are_freed() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let blocks: Vec<_> = (0..10).map(|_| take(&mut runs, 2, Kind::Large)).collect();
    for (block, since) in blocks.iter().step_by(2).zip([30, u32::MAX, 10, 20, 5]) {
        runs.free(block.first, dirty(since));
        runs.check_free().unwrap();
    }
    let ages: Vec<_> = runs.dirty_by_age().map(|(run, _)| run.dirty_since().0).collect();
    assert_eq!(ages, [u32::MAX, 5, 10, 20, 30], "the clock passed its end");
}

#[test]
fn all_stuck_runs_become_dirty_wherever_they_are() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [first, _, second, behind, _, last, _] = [2, 1, 3, 4, 1, 5, 1].map(|pages| take(&mut runs, pages, Kind::Large));
    runs.free(behind.first, dirty(5));
    for stuck in [first, second, last] {
        runs.free(stuck.first, FreeState { kind: Kind::Stuck, ..dirty(3) });
    }
    assert_eq!((runs.counts().of(Kind::Stuck), runs.counts().of(Kind::Dirty)), (Pages(10), Pages(4)));
    runs.end_stuck(Moment(9));
    assert_eq!((runs.counts().of(Kind::Stuck), runs.counts().of(Kind::Dirty)), (Pages::ZERO, Pages(14)));
    assert_eq!(runs.run_at(second.first).pages, Pages(7), "the dirty run behind it is a part of it");
    runs.check_free().unwrap();
}

#[test]
fn pages_of_spans_blocks_and_heaps_are_in_use() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    for (pages, kind) in [(1, Kind::Small), (2, Kind::Large), (4, Kind::Metadata)] {
        take(&mut runs, pages, kind);
    }
    assert_eq!(runs.counts().in_use(), Pages(7));
}

#[test]
fn a_reserved_run_that_is_long_enough_is_found() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [short, _, long, _] = [2, 1, 6, 1].map(|pages| take(&mut runs, pages, Kind::Large));
    for run in [short, long] {
        runs.free(run.first, FreeState { kind: Kind::Reserved, ..FreeState::CLEAN });
    }
    assert_eq!(runs.find_reserved(Pages(3)), Some(long.first));
    assert_eq!(runs.find_reserved(Pages(7)), None);
}

#[test]
fn aligned_pages_are_cut_out_and_the_rest_stays_what_it_was() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let (pages, was) = runs.take_aligned(PageIndex(1), Pages(8), Pages(16), Kind::Large);
    assert_eq!((pages.pages, was.kind), (Pages(8), Kind::Clean));
    assert!(runs.layout().page_start(pages.first).addr().is_multiple_of(16 * freestone_base::units::PAGE_BYTES));
    assert_eq!(runs.counts().of(Kind::Clean), Pages(N_PAGES - 8));
    assert_eq!(runs.counts().of(Kind::Large), Pages(8));
    runs.check_free().unwrap();
}

#[test]
fn a_block_is_put_together_of_a_dirty_run_and_the_free_pages_on_either_side() {
    for dirty_first in [true, false] {
        let os = Fake::new(4096, RANGE_BYTES);
        let mut runs = runs(&os);
        let blocks: Vec<_> = (0..4).map(|_| take(&mut runs, 10, Kind::Large)).collect();
        let (one, other) = if dirty_first { (1, 2) } else { (2, 1) };
        runs.free(blocks[one].first, dirty(1));
        runs.free(blocks[other].first, FreeState { is_huge: true, ..FreeState::CLEAN });
        assert_eq!(runs.take_mixed(Pages(16), Pages(5)), None, "too little of it is dirty");
        assert_eq!(runs.take_mixed(Pages(21), Pages(20)), None, "there are 20 pages between the others");
        let block = runs.take_mixed(Pages(15), Pages(7)).unwrap();
        assert_eq!(block, extent(if dirty_first { blocks[1].first.0 } else { blocks[1].first.0 + 5 }, 15));
        assert_eq!(runs.run_at(block.first), block);
        assert!(runs.record(block.first).is_huge.get(), "a part of it is");
        runs.check_free().unwrap();
    }
}

#[test]
fn the_peak_of_use_is_returned_once_and_leaves_out_what_a_placement_gave_back() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let block = take(&mut runs, 50, Kind::Large);
    runs.free(block.first, dirty(1));
    assert_eq!((runs.take_peak_in_use(), runs.take_peak_in_use()), (Pages(50), Pages::ZERO));
    assert_eq!(runs.peak(), Pages(50));
    runs.take_aligned(block.first, Pages(10), Pages(16), Kind::Small);
    assert_eq!((runs.take_peak_in_use(), runs.peak()), (Pages(10), Pages(50)));
}

/// The shortest that is long enough is found among many, also where the lists in between are empty.
#[test]
fn the_shortest_run_that_is_long_enough_is_found() {
    const LONG: u32 = 1100;
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = clean_runs(&os, Pages(2 * LONG));
    let all: Vec<_> = (1..=40).chain([LONG]).map(|n| [n, 1].map(|n| take(&mut runs, n, Kind::Large))[0]).collect();
    all.iter().for_each(|run| runs.free(run.first, dirty(1)));
    assert_eq!(runs.dirty.longest(&runs.records).count(), 41);
    assert_eq!(runs.longest_dirty().unwrap().pages, Pages(LONG));
    let found = |runs: &Runs, n| runs.find_dirty(Pages(n)).map(|page| runs.run_at(page).pages.0);
    for n in 1..=40 {
        assert_eq!(found(&runs, n), Some(n));
        runs.take_aligned(all[n as usize - 1].first, Pages(n), Pages(1), Kind::Large);
        assert_eq!(found(&runs, n), Some(if n == 40 { LONG } else { n + 1 }));
    }
    assert_eq!((found(&runs, LONG), found(&runs, LONG + 1)), (Some(LONG), None));
    assert_eq!(runs.dirty.longest(&runs.records).map(|(_, pages)| pages).collect::<Vec<_>>(), [Pages(LONG)]);
    runs.check_free().unwrap();
}

#[test]
fn runs_that_are_purged_are_in_no_set_until_they_are_back() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let block = take(&mut runs, 20, Kind::Large);
    runs.free(block.first, dirty(1));
    let purging = runs.begin_purge(Extent::new(block.first, Pages(8)));
    assert_eq!((runs.counts().of(Kind::Purging), runs.find_dirty(Pages(13))), (Pages(8), None));
    runs.check_free().unwrap();
    runs.end_purge(purging, FreeState::CLEAN);
    assert!(runs.abandoned_purge().is_none());
    assert_eq!(runs.counts().of(Kind::Clean), Pages(N_PAGES - 12));
    runs.check_free().unwrap();
}

/// A step, applied to the run in use, or the free run, that contains the page `at`.
#[derive(Clone, Debug)]
enum Step {
    Take { pages: u32, align_log2: u32, of_dirty: bool },
    Mixed { pages: u32 },
    Free { at: u32, dirty: bool, since: u32 },
    FreeInTwo { at: u32 },
    Shrink { at: u32 },
    Extend { at: u32, more: u32 },
    Turn { at: u32, kind: usize },
    Purge { pages: u32, fails: bool },
}

fn any_step() -> impl Strategy<Value = Step> {
    let (at, pages) = (0..N_PAGES, 1u32..40);
    prop_oneof![
        6 => (pages.clone(), 0u32..4, any::<bool>())
            .prop_map(|(pages, align_log2, of_dirty)| Step::Take { pages, align_log2, of_dirty }),
        1 => pages.clone().prop_map(|pages| Step::Mixed { pages }),
        6 => (at.clone(), any::<bool>(), 0u32..50).prop_map(|(at, dirty, since)| Step::Free { at, dirty, since }),
        1 => at.clone().prop_map(|at| Step::FreeInTwo { at }),
        1 => at.clone().prop_map(|at| Step::Shrink { at }),
        2 => (at.clone(), 1u32..10).prop_map(|(at, more)| Step::Extend { at, more }),
        2 => (at, 0usize..4).prop_map(|(at, kind)| Step::Turn { at, kind }),
        1 => (pages, any::<bool>()).prop_map(|(pages, fails)| Step::Purge { pages, fails }),
    ]
}

/// The run that a page is in, if `is_right` of its kind.
fn run_around(runs: &Runs, at: u32, is_right: impl Fn(Kind) -> bool) -> Option<Extent> {
    let page = PageIndex(at + 1);
    let (run, record) = runs.iter().find(|(run, _)| page < run.end())?;
    is_right(record.kind.get()).then_some(run)
}

fn step(runs: &mut Runs, step: &Step, model: &mut [Kind]) {
    let mut set = |run: Extent, kind: Kind| {
        model[run.first.0 as usize - 1..run.end().0 as usize - 1].fill(kind);
    };
    let is_large = |kind| kind == Kind::Large;
    match *step {
        Step::Take { pages, align_log2, of_dirty } => {
            let (pages, align) = (Pages(pages), Pages(1 << align_log2));
            let searched = pages + align - Pages(1);
            let dirty = runs.find_dirty(searched).or_else(|| runs.find_dirty_aligned(pages, align));
            let found = if of_dirty { dirty } else { runs.find_clean(searched) };
            if let Some(page) = found {
                set(runs.take_aligned(page, pages, align, Kind::Large).0, Kind::Large);
            }
        }
        Step::Mixed { pages } => {
            if runs.find_dirty(Pages(pages)).is_none()
                && let Some(run) = runs.take_mixed(Pages(pages), Pages(pages / 2))
            {
                set(run, Kind::Large);
            }
        }
        Step::Free { at, dirty: is_dirty, since } => {
            if let Some(run) = run_around(runs, at, is_large) {
                runs.free(run.first, if is_dirty { dirty(since) } else { FreeState::CLEAN });
                set(run, if is_dirty { Kind::Dirty } else { Kind::Clean });
            }
        }
        Step::FreeInTwo { at } => {
            if let Some(run) = run_around(runs, at, is_large) {
                let first = Extent::new(run.first, Pages(run.pages.0.div_ceil(2)));
                runs.free_in_two(run.first, first.pages, FreeState::RESERVED, dirty(7));
                set(run, Kind::Dirty);
                set(first, Kind::Reserved);
            }
        }
        Step::Shrink { at } => {
            if let Some(run) = run_around(runs, at, is_large).filter(|run| run.pages > Pages(1)) {
                let keep = Pages(run.pages.0 / 2);
                runs.shrink(run.first, keep, dirty(8));
                set(Extent::new(run.first + keep, run.pages - keep), Kind::Dirty);
            }
        }
        Step::Extend { at, more } => {
            if let Some(run) = run_around(runs, at, is_large) {
                let behind = runs.record(run.end());
                if behind.kind.get().is_free_and_mapped() && behind.n_pages() >= Pages(more) {
                    runs.extend(run.first, Pages(more));
                    set(Extent::new(run.end(), Pages(more)), Kind::Large);
                }
            }
        }
        Step::Turn { at, kind } => {
            if let Some(run) = run_around(runs, at, |kind| kind == Kind::Clean || kind == Kind::Reserved) {
                let free = [FreeState::CLEAN, FreeState::RESERVED, dirty(3), FreeState::CLEAN][kind];
                let first = Extent::new(run.first, Pages(run.pages.0.div_ceil(2)));
                runs.turn(first, free);
                set(first, free.kind);
            }
        }
        Step::Purge { pages, fails } => {
            if let Some(run) = runs.oldest_dirty() {
                let piece = Extent::new(run.first, run.pages.min(Pages(pages)));
                let purging = runs.begin_purge(piece);
                let kind = if fails { Kind::Stuck } else { Kind::Clean };
                runs.end_purge(purging, FreeState { kind, ..FreeState::CLEAN });
                set(piece, kind);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 300 }, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Every page has the kind that the last step gave it, and every invariant holds after every step.
    #[test]
    fn every_page_has_the_kind_that_the_last_step_gave_it(
        steps in proptest::collection::vec(any_step(), 0..if cfg!(miri) { 8 } else { 200 }),
    ) {
        let os = Fake::new(4096, RANGE_BYTES);
        let mut runs = runs(&os);
        let mut model = kinds(&runs);
        for one in steps {
            step(&mut runs, &one, &mut model);
            prop_assert_eq!(&kinds(&runs), &model, "after {:?}", one);
            runs.check_free().unwrap();
        }
        for (kind, counted) in runs.counts().iter() {
            prop_assert_eq!(counted.0 as usize, model.iter().filter(|&&page| page == kind).count());
        }
    }
}
