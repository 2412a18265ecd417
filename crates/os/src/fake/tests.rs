use super::*;
use crate::test_range::TestRange;
use crate::{Errno, NotMoved, Os, Target};
use alloc::vec::Vec;

const OS_PAGE: usize = 4096;

#[test]
fn the_planned_call_fails_once_or_from_then_on() {
    let fake = Fake::new(OS_PAGE, 1 << 20);
    let range = TestRange::new(&fake, 1 << 20, 0);
    fake.plan(Some(Failure { nth_call: 1, errno: Errno::NOMEM, for_good: false }));
    assert_eq!(range.commit(0..OS_PAGE, false), Ok(()));
    assert_eq!(range.commit(OS_PAGE..2 * OS_PAGE, false), Err(Errno::NOMEM));
    assert_eq!(range.commit(OS_PAGE..2 * OS_PAGE, false), Ok(()));
    fake.plan(Some(Failure { nth_call: 0, errno: Errno::AGAIN, for_good: true }));
    assert_eq!(range.purge(0..OS_PAGE), Err(Errno::AGAIN));
    assert_eq!(range.purge(0..OS_PAGE), Err(Errno::AGAIN));
    assert_eq!(fake.n_calls(), 2);
}

#[test]
fn purged_memory_is_zero_unless_told_to_keep_it() {
    let fake = Fake::new(16384, 1 << 20);
    let range = TestRange::new(&fake, 1 << 20, 16384);
    range.write(0, 5);
    range.purge(0..16384).unwrap();
    assert_eq!(range.read(0), 0);
    fake.keep_contents_on_purge();
    range.write(0, 5);
    range.purge(0..16384).unwrap();
    assert_eq!((range.read(0), fake.purge_zeroes()), (5, false));
    assert_eq!(fake.committed_bytes(), 16384);
    assert_eq!(fake.purged_bytes(), 2 * 16384);
}

#[test]
fn a_kernel_that_gets_the_memory_of_one_before_it_finds_it_zero() {
    // A size that no other test has.
    const BYTES: usize = 5 << 20;
    let mut addresses = Vec::new();
    for _ in 0..3 {
        let fake = Fake::new(OS_PAGE, BYTES);
        let range = TestRange::new(&fake, BYTES, BYTES);
        assert!((0..BYTES).step_by(OS_PAGE).all(|at| range.read(at) == 0));
        (0..BYTES).step_by(3 * OS_PAGE).for_each(|at| range.write(at, 5));
        range.release(OS_PAGE..2 * OS_PAGE).unwrap();
        addresses.push(range.at(0));
    }
    assert!(cfg!(miri) || addresses.windows(2).all(|two| two[0] == two[1]), "{addresses:?}");
}

#[test]
fn what_fails_half_way_has_done_half_its_work() {
    let fake = Fake::new(OS_PAGE, 1 << 20);
    let bytes = 8 * OS_PAGE;
    let range = TestRange::new(&fake, 1 << 20, 2 * bytes);
    let (source, to, target) = (0..bytes, bytes, bytes..2 * bytes);
    let next = |errno| Failure { nth_call: 0, errno, for_good: false };
    range.fill(source.clone(), 9);
    fake.plan_half_way(next(Errno::NOMEM));
    let reserved = NotMoved { errno: Errno::NOMEM, target: Target::Reserved };
    assert_eq!(range.relocate(source.clone(), to), Err(reserved));
    assert_eq!((range.read(0), fake.committed_bytes(), fake.is_untouched_outside()), (9, bytes, true));
    range.write(to, 1);
    assert!(!fake.is_untouched_outside(), "a write to what is not mapped is seen");
    range.write(to, 0);
    range.commit(target.clone(), false).unwrap();
    fake.plan_half_way(next(Errno::EXIST));
    let taken = NotMoved { errno: Errno::EXIST, target: Target::Taken };
    assert_eq!(range.relocate(source.clone(), to), Err(taken));
    assert_eq!(range.commit(target, false), Err(Errno::EXIST));
    fake.plan_half_way(next(Errno::AGAIN));
    assert_eq!(range.purge(source.clone()), Err(Errno::AGAIN));
    assert_eq!((range.read(0), range.read(bytes / 2)), (0, 9));
    fake.plan_half_way(next(Errno::NOMEM));
    assert_eq!(range.advise_huge(source, true), Err(Errno::NOMEM));
    assert_eq!(fake.huge_bytes(), bytes / 2);
}
