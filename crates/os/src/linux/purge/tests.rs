extern crate std;
use super::*;
use crate::Os;
use crate::linux::Linux;
use crate::linux::tests::{in_a_process_of_its_own, limit_memory};
use crate::test_range::TestRange;
use std::vec::Vec;

/// The program has used up its address space: nothing can be mapped.
#[test]
fn purged_memory_is_zero_where_nothing_can_be_mapped() {
    assert!(in_a_process_of_its_own(|| {
        let bytes = 1 << 20;
        let range = TestRange::new(&Linux, bytes, bytes);
        ZEROES.forget();
        limit_memory(0) && range.purge(0..bytes).is_ok() && range.read(0) == 0 && Linux.purge_zeroes()
    }));
}

/// Each thread tries on the same page.
#[test]
fn threads_that_try_purging_at_once_never_find_that_it_does_not_work() {
    for _ in 0..200 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let zeroes = Answer::new();
                    try_one(&zeroes);
                    assert_ne!(zeroes.get(), Some(false));
                });
            }
        });
    }
}

/// Every second OS page of a range of 40, all of which are 1.
fn every_second(range: &TestRange<'_, Linux>) -> Vec<MemoryRange> {
    let page = process::os_page_bytes();
    range.fill(0..40 * page, 1);
    (0..20).map(|at| MemoryRange { start: range.at(2 * at * page), bytes: page }).collect()
}

#[test]
fn several_ranges_go_back_with_one_call_and_nothing_between_them() {
    let page = process::os_page_bytes();
    let range = TestRange::new(&Linux, 64 * page, 64 * page);
    // The first purge asks whether purged memory reads as zero.
    range.purge(0..page).unwrap();
    let ranges = every_second(&range);
    process::set_errno(Errno(7));
    let (mut n_gone, mut n_calls) = (0, 0);
    while n_gone < ranges.len() {
        // SAFETY: the ranges are this test's, and committed; their contents are not needed.
        n_gone += unsafe { Linux.purge_first(&ranges[n_gone..]) };
        n_calls += 1;
        assert!(n_calls <= 20, "a range is refused");
    }
    assert_eq!(process::errno(), Errno(7));
    assert_eq!(n_calls, if TAKES_MANY.get() == Some(true) { 1 } else { 20 });
    let contents: Vec<u8> = (0..40).map(|at| range.read(at * page)).collect();
    assert!(contents.chunks(2).all(|pair| pair == [0, 1]), "{contents:?}");
}

#[test]
fn the_ranges_before_one_that_is_locked_go_back_and_it_is_refused() {
    assert!(in_a_process_of_its_own(|| {
        let page = process::os_page_bytes();
        let range = TestRange::new(&Linux, 64 * page, 64 * page);
        let ranges = every_second(&range);
        let first_gone = |from: usize| {
            // SAFETY: the ranges are this test's, and committed; their contents are not needed.
            unsafe { Linux.purge_first(&ranges[from..]) }
        };
        // SAFETY: locking memory does not change it.
        if unsafe { libc::mlock(ranges[5].start.cast(), page) } != 0 {
            return true;
        }
        let mut n_gone = 0;
        while n_gone < 5 {
            n_gone += first_gone(n_gone);
        }
        n_gone == 5
            && first_gone(5) == 0
            && range.read(10 * page) == 1
            && first_gone(6) > 0
            && range.read(12 * page) == 0
    }));
}

/// As when a filter is installed later: the kernel is believed to take several, and refuses.
#[test]
fn where_the_call_for_several_is_refused_they_go_one_by_one() {
    assert!(in_a_process_of_its_own(|| {
        let page = process::os_page_bytes();
        let range = TestRange::new(&Linux, 64 * page, 64 * page);
        let mut ranges = every_second(&range);
        ZEROES.set(true);
        TAKES_MANY.set(true);
        // No call takes so many.
        ranges.resize(2000, MemoryRange { start: range.at(0), bytes: page });
        // SAFETY: the ranges are this test's, and committed; their contents are not needed.
        let n = unsafe { Linux.purge_first(&ranges) };
        n == 1 && range.read(0) == 0 && range.read(2 * page) == 1 && TAKES_MANY.get() == Some(false)
    }));
}
