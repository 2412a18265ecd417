#![allow(unsafe_code)]
use super::{copy, fill};

const LEN: usize = 96;

fn bytes() -> [u8; LEN] {
    core::array::from_fn(|at| at as u8)
}

#[test]
fn bytes_are_copied_whichever_way_they_overlap() {
    for (from, to) in (0..24).flat_map(|from| (0..24).map(move |to| (from, to))) {
        for n in 0..=LEN - 24 {
            let (mut copied, mut expected) = (bytes(), bytes());
            for at in 0..n {
                expected[to + at] = (from + at) as u8;
            }
            let start = copied.as_mut_ptr();
            // SAFETY: both stretches end in the array.
            unsafe { copy(start.wrapping_add(to), start.wrapping_add(from), n) };
            assert_eq!(copied, expected, "{n} bytes from {from} to {to}");
        }
    }
}

#[test]
fn as_many_bytes_are_filled_as_are_asked_for() {
    for (to, n) in (0..24).flat_map(|to| (0..=LEN - 24).map(move |n| (to, n))) {
        let (mut filled, mut expected) = (bytes(), bytes());
        expected[to..to + n].fill(0xa5);
        // SAFETY: the stretch ends in the array.
        unsafe { fill(filled.as_mut_ptr().wrapping_add(to), 0xa5, n) };
        assert_eq!(filled, expected, "{n} bytes at {to}");
    }
}
