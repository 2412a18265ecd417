//! Guards in runs, over the records of a fake kernel; nothing is made inaccessible but in the records.
use super::*;
use crate::page::runs::tests::clean_runs;
use crate::testing::RANGE_BYTES;
use freestone_base::units::Moment;
use freestone_os::fake::Fake;

const N_PAGES: u32 = 100;

fn runs(os: &Fake) -> Runs {
    clean_runs(os, Pages(N_PAGES))
}

/// Takes `n` blocks of `pages`, each with a guard behind it.
fn blocks<const N: usize>(runs: &mut Runs, pages: u32) -> [Extent; N] {
    [(); N].map(|()| {
        let page = runs.find_clean(Pages(pages + 1)).unwrap();
        let (block, _) = runs.take_aligned(page, Pages(pages), ONE, Kind::Large);
        runs.take_guard(block.end());
        runs.close_guard(block.end(), PageAccess::Marked);
        block
    })
}

fn dirty() -> FreeState {
    FreeState::dirty(Moment(1), false)
}

/// Makes all guards in a run accessible, as the page heap does.
fn open(runs: &mut Runs, run: Extent) -> u32 {
    let (mut from, mut n) = (run.first, 0);
    while let Some((page, _)) = runs.next_guard(run, from) {
        runs.open_page(run.first, page);
        (from, n) = (page + ONE, n + 1);
    }
    runs.note_open(run);
    assert!(!runs.record(run.first).has_guards.get(), "nobody looks for them again");
    n
}

fn count(runs: &Runs, kind: Kind) -> u32 {
    runs.counts().of(kind).0
}

#[test]
fn a_guard_is_its_own_run_beside_a_block_in_use_and_counts_as_nothing_else() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [first, second] = blocks(&mut runs, 4);
    assert_eq!((runs.counts().in_use(), count(&runs, Kind::Guard)), (Pages(8), 2));
    for block in [first, second] {
        assert_eq!(runs.record(block.end()).kind.get(), Kind::Guard);
    }
    runs.free(first.first, dirty());
    assert_eq!(runs.run_at(first.first), first, "the guard behind it protects the second block");
    runs.check_free().unwrap();
}

#[test]
fn a_clean_run_of_just_the_length_is_found_only_before_a_guard() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let rest = N_PAGES - 10;
    let [guarded, _] = blocks(&mut runs, 4);
    let end = runs.find_clean(Pages(rest)).unwrap();
    runs.take_aligned(end, Pages(rest), ONE, Kind::Large);
    runs.free(guarded.first, FreeState::CLEAN);
    assert_eq!(runs.find_clean_before_guard(Pages(4), ONE), Some(guarded.first));
    runs.take_aligned(guarded.first, Pages(4), ONE, Kind::Large);
    runs.free(end, FreeState::CLEAN);
    assert_eq!(runs.find_clean_before_guard(Pages(rest), ONE), None, "nothing is behind it");
    assert_eq!(runs.find_clean_before_guard(Pages(rest - 1), ONE), Some(end));
}

#[test]
fn a_block_that_is_not_closed_after_all_is_a_large_block_again() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [block] = blocks(&mut runs, 4);
    runs.quarantine(block.first);
    assert_eq!((count(&runs, Kind::Quarantined), count(&runs, Kind::Large)), (4, 0));
    runs.end_quarantine(block.first);
    assert_eq!((count(&runs, Kind::Quarantined), count(&runs, Kind::Large)), (0, 4));
    assert_eq!(runs.record(block.first).kind.get(), Kind::Large);
}

#[test]
fn free_runs_join_across_a_guard_which_has_no_memory() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [first, second, wall] = blocks(&mut runs, 4);
    runs.free(second.first, dirty());
    runs.free(first.first, dirty());
    assert_eq!(runs.run_at(first.first), Extent::new(first.first, Pages(9)));
    assert_eq!((count(&runs, Kind::Dirty), count(&runs, Kind::Guard)), (8, 3));
    runs.check_free().unwrap();
    runs.free(wall.first, dirty());
    // The last guard joins the clean pages behind it.
    assert_eq!(runs.run_at(first.first), Extent::new(first.first, Pages(14)));
    assert_eq!(runs.record(wall.end()).kind.get(), Kind::Clean);
    assert_eq!((count(&runs, Kind::Dirty), count(&runs, Kind::Guard)), (12, 3));
    runs.check_free().unwrap();
}

/// A block that leaves one page before the guard of an earlier one makes that page its own.
#[test]
fn of_two_guards_beside_each_other_one_is_free_with_either_of_the_blocks() {
    for frees_first in [true, false] {
        let os = Fake::new(4096, RANGE_BYTES);
        let mut runs = runs(&os);
        let [first, second, _wall] = blocks(&mut runs, 4);
        runs.free(first.first, dirty());
        let (shorter, _) = runs.take_aligned(first.first, Pages(3), ONE, Kind::Large);
        runs.take_guard(shorter.end());
        runs.close_guard(shorter.end(), PageAccess::Marked);
        runs.check_free().unwrap();
        if frees_first {
            runs.free(shorter.first, dirty());
            assert_eq!(runs.run_at(first.first), first, "the guard before the second block stays");
        } else {
            runs.free(second.first, dirty());
            assert_eq!(runs.run_at(first.end()), Extent::new(first.end(), Pages(5)), "that of the shorter block stays");
        }
        runs.check_free().unwrap();
        runs.free(if frees_first { second.first } else { shorter.first }, dirty());
        assert_eq!(runs.run_at(first.first), Extent::new(first.first, Pages(9)));
        assert_eq!((count(&runs, Kind::Dirty), count(&runs, Kind::Guard)), (7, 4));
        runs.check_free().unwrap();
    }
}

#[test]
fn whoever_takes_pages_into_use_finds_the_guards_in_them_wherever_they_are_taken_from() {
    for (skip, taken, guards) in [(0, 4, 0), (0, 5, 1), (0, 10, 2), (1, 4, 1), (3, 9, 2), (5, 4, 0)] {
        let os = Fake::new(4096, RANGE_BYTES);
        let mut runs = runs(&os);
        let [first, second, third, _] = blocks(&mut runs, 4);
        [third, first, second].iter().for_each(|block| runs.free(block.first, dirty()));
        if skip > 0 {
            let page = runs.find_dirty(Pages(14)).unwrap();
            runs.take_aligned(page, Pages(skip), ONE, Kind::Small);
        }
        let page = runs.find_dirty(Pages(taken)).unwrap();
        let (run, _) = runs.take_aligned(page, Pages(taken), ONE, Kind::Large);
        // What was skipped has a guard in it from five pages on.
        if skip > 0 {
            open(&mut runs, Extent::new(page - Pages(skip), Pages(skip)));
        }
        assert_eq!((run.pages, open(&mut runs, run)), (Pages(taken), guards), "{taken} pages behind {skip}");
        assert_eq!(runs.counts().in_use(), Pages(4 + taken + skip));
        runs.check_free().unwrap();
    }
}

#[test]
fn a_purge_leaves_guards_where_they_are() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [first, second, _] = blocks(&mut runs, 4);
    [first, second].iter().for_each(|block| runs.free(block.first, dirty()));
    let purging = runs.begin_purge(Extent::new(first.first, Pages(6)));
    runs.check_free().unwrap();
    assert_eq!((runs.n_open(purging.extent()), count(&runs, Kind::Purging)), (Pages(5), 5));
    runs.end_purge(purging, FreeState::CLEAN);
    runs.check_free().unwrap();
    assert_eq!(runs.next_guard(runs.run_at(first.first), first.first), Some((first.end(), PageAccess::Marked)));
}

#[test]
fn a_block_that_grows_takes_its_guard_with_what_is_behind_it() {
    let os = Fake::new(4096, RANGE_BYTES);
    let mut runs = runs(&os);
    let [block] = blocks(&mut runs, 4);
    runs.end_guard(block.end());
    assert_eq!(runs.record(block.end()).kind.get(), Kind::Clean);
    runs.extend(block.first, Pages(3));
    assert_eq!(open(&mut runs, Extent::new(block.end(), Pages(3))), 1);
    assert_eq!((runs.counts().in_use(), count(&runs, Kind::Guard)), (Pages(7), 0));
    runs.check_free().unwrap();
}

/// The free run is as long as is taken of it, so that what is left has no neighbour that says so.
#[test]
fn what_is_left_beside_aligned_pages_says_that_there_may_be_guards_in_it() {
    for skip in 1..=8 {
        let os = Fake::new(4096, RANGE_BYTES);
        let mut runs = runs(&os);
        runs.take_aligned(PageIndex(1), Pages(skip), ONE, Kind::Small);
        let [first, second, _wall] = blocks(&mut runs, 4);
        [first, second].iter().for_each(|block| runs.free(block.first, dirty()));
        let page = runs.find_dirty(Pages(9)).unwrap();
        let (run, _) = runs.take_aligned(page, Pages(2), Pages(8), Kind::Large);
        open(&mut runs, run);
        runs.check_free().unwrap();
    }
}
