extern crate std;

use super::*;
use crate::{Os, System};
use freestone_testkit::again;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether no call of `lend`, which panics with the mapping that it gets, leaves the mapping behind. Another thread may map something at the same place.
fn is_given_back(lend: impl Fn(&mut *mut u8)) -> bool {
    (0..20).any(|_| {
        let mut at = core::ptr::null_mut();
        assert!(catch_unwind(AssertUnwindSafe(|| lend(&mut at))).is_err());
        assert!(!at.is_null());
        !System.is_resident(at)
    })
}

#[test]
fn memory_that_is_lent_for_a_call_goes_back_if_that_panics() {
    // Under qemu no program can unwind that has OS pages of other sizes than this machine's.
    if again::is_emulated() {
        return;
    }
    assert!(is_given_back(|at| {
        with_rows(1000, |rows: &mut [u64]| {
            *at = rows.as_mut_ptr().cast();
            panic!("for the test")
        })
        .unwrap()
    }));
    assert!(is_given_back(|at| {
        with_long_text::<10_000, _>(|text| {
            *at = core::ptr::from_mut(text).cast::<u8>().map_addr(|at| at & !4095);
            text.push(b"touched");
            panic!("for the test")
        })
        .unwrap()
    }));
}
