#![allow(unsafe_code)]
use super::*;
use crate::{Errno, NotMoved, Os, Target};

#[test]
fn the_planned_call_fails_once_or_from_then_on() {
    let fake = Fake::new(4096, 1 << 20);
    let address_range = fake.propose_range(1 << 20, 0).unwrap();
    // SAFETY: ranges inside the proposed address range, used by this test alone.
    unsafe {
        fake.plan(Some(Failure { nth_call: 1, errno: Errno::NOMEM, for_good: false }));
        assert_eq!(fake.commit(address_range, 4096, false), Ok(()));
        assert_eq!(fake.commit(address_range.add(4096), 4096, false), Err(Errno::NOMEM));
        assert_eq!(fake.commit(address_range.add(4096), 4096, false), Ok(()));
        fake.plan(Some(Failure { nth_call: 0, errno: Errno::AGAIN, for_good: true }));
        assert_eq!(fake.purge(address_range, 4096), Err(Errno::AGAIN));
        assert_eq!(fake.purge(address_range, 4096), Err(Errno::AGAIN));
        assert_eq!(fake.n_calls(), 2);
    }
}

#[test]
fn purged_memory_is_zero_unless_told_to_keep_it() {
    let fake = Fake::new(16384, 1 << 20);
    let address_range = fake.propose_range(1 << 20, 0).unwrap();
    // SAFETY: as above.
    unsafe {
        fake.commit(address_range, 16384, false).unwrap();
        address_range.write(5);
        fake.purge(address_range, 16384).unwrap();
        assert_eq!(address_range.read(), 0);
        fake.keep_contents_on_purge();
        address_range.write(5);
        fake.purge(address_range, 16384).unwrap();
        assert_eq!((address_range.read(), fake.purge_zeroes()), (5, false));
    }
    assert_eq!(fake.committed_bytes(), 16384);
    assert_eq!(fake.purged_bytes(), 2 * 16384);
}

#[test]
fn what_fails_half_way_has_done_half_its_work() {
    let fake = Fake::new(4096, 1 << 20);
    let address_range = fake.propose_range(1 << 20, 0).unwrap();
    let bytes = 8 * 4096;
    let next = |errno| Failure { nth_call: 0, errno, for_good: false };
    // SAFETY: ranges inside the proposed address range, used by this test alone.
    unsafe {
        fake.commit(address_range, 2 * bytes, false).unwrap();
        let to = address_range.add(bytes);
        address_range.write_bytes(9, bytes);
        fake.plan_half_way(next(Errno::NOMEM));
        let reserved = NotMoved { errno: Errno::NOMEM, target: Target::Reserved };
        assert_eq!(fake.relocate(address_range, bytes, to), Err(reserved));
        assert_eq!((address_range.read(), fake.committed_bytes(), fake.is_untouched_outside()), (9, bytes, true));
        to.write(1);
        assert!(!fake.is_untouched_outside(), "a write to what is not mapped is seen");
        to.write(0);
        fake.commit(to, bytes, false).unwrap();
        fake.plan_half_way(next(Errno::EXIST));
        let taken = NotMoved { errno: Errno::EXIST, target: Target::Taken };
        assert_eq!(fake.relocate(address_range, bytes, to), Err(taken));
        assert_eq!(fake.commit(to, bytes, false), Err(Errno::EXIST));
        fake.plan_half_way(next(Errno::AGAIN));
        assert_eq!(fake.purge(address_range, bytes), Err(Errno::AGAIN));
        assert_eq!((address_range.read(), address_range.add(bytes / 2).read()), (0, 9));
        fake.plan_half_way(next(Errno::NOMEM));
        assert_eq!(fake.advise_huge(address_range, bytes, true), Err(Errno::NOMEM));
        assert_eq!(fake.huge_bytes(), bytes / 2);
    }
}
