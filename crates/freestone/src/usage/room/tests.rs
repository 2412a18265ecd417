use super::*;
use crate::size_class::{N_CLASSES, class_of};
use proptest::prelude::*;
use std::vec::Vec;

const CLASS: usize = class_of(8000);
const MOST: u32 = (LENT_MOST / block_bytes(CLASS) as i64) as u32;

/// Lends to `n` bins in turn until none gets more. Returns what each has.
fn lend_all(room: &SharedRoom, n: usize) -> Vec<u32> {
    let mut has: Vec<u32> = (0..n).map(|_| 0).collect();
    loop {
        let before = has.clone();
        has.iter_mut().for_each(|has| *has += room.lend(CLASS, *has, 1));
        if has == before {
            return has;
        }
    }
}

#[test]
fn a_bin_alone_borrows_half_and_many_get_equal_parts() {
    for n in [1, 2, 7, 100] {
        let room = SharedRoom::new();
        let part = MOST / (n as u32 + 1);
        let has = lend_all(&room, n);
        assert!(has.iter().all(|&has| has + 1 >= part && has <= part + 1), "{n} bins have {has:?}");
    }
}

#[test]
fn a_bin_gets_at_once_what_it_lacks_if_that_is_no_more_than_half_of_what_is_left() {
    let room = SharedRoom::new();
    assert_eq!(room.lend(CLASS, 0, 5), 5);
    assert_eq!(room.lend(CLASS, 0, u32::MAX), (MOST - 5) / 2);
    assert_eq!(room.lend(CLASS, MOST, u32::MAX), 0, "it has more than is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bins of all classes borrow and give back in any order.
    #[test]
    fn what_is_lent_is_what_bins_have_and_never_more_than_the_most(
        steps in proptest::collection::vec((0..N_CLASSES, 0u32..5000, any::<bool>()), 1..200),
    ) {
        let (room, mut has) = (SharedRoom::new(), [0_u32; N_CLASSES]);
        for (class, lacks, gives_back) in steps {
            if gives_back {
                room.take_back(class, core::mem::take(&mut has[class]));
            } else {
                has[class] += room.lend(class, has[class], lacks);
            }
            let bytes: i64 = has.iter().enumerate().map(|(class, &has)| i64::from(has) * block_bytes(class) as i64).sum();
            prop_assert_eq!(room.lent_bytes(), bytes);
            prop_assert!((0..=LENT_MOST).contains(&bytes));
        }
    }
}
