#![allow(unsafe_code)]
use super::*;
use crate::routines::find_all;

const LEN: usize = 200;

fn bytes() -> [u8; LEN] {
    core::array::from_fn(|at| at as u8)
}

/// Every function copies and fills as a loop over bytes does, before the C library's functions are known and after.
#[test]
fn bytes_are_copied_and_filled_as_by_a_loop() {
    for round in 0..2 {
        for (from, to, n) in [(0, 0, 0), (0, 1, 150), (1, 0, 150), (40, 0, 1), (100, 3, 97), (3, 100, 97), (0, 199, 1)]
        {
            let (mut expected, mut zeroed, mut valued) = (bytes(), bytes(), bytes());
            for at in 0..n {
                expected[to + at] = (from + at) as u8;
            }
            zeroed[to..to + n].fill(0);
            valued[to..to + n].fill(0x7f);
            type Copies = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;
            for (copies, returned) in [(memcpy as Copies, to), (memmove, to), (mempcpy, to + n), (__mempcpy, to + n)] {
                let mut seen = bytes();
                let start = seen.as_mut_ptr();
                // SAFETY: both stretches end in the array.
                let result = unsafe { copies(start.wrapping_add(to), start.wrapping_add(from), n) };
                assert_eq!(
                    (seen, result),
                    (expected, start.wrapping_add(returned)),
                    "{n} from {from} to {to}, {round}"
                );
            }
            let mut seen = bytes();
            let start = seen.as_mut_ptr();
            // SAFETY: both stretches end in the array.
            unsafe { bcopy(start.wrapping_add(from), start.wrapping_add(to), n) };
            assert_eq!(seen, expected);
            for zeroes in [bzero as unsafe extern "C" fn(*mut u8, usize), explicit_bzero] {
                let mut seen = bytes();
                // SAFETY: the stretch ends in the array.
                unsafe { zeroes(seen.as_mut_ptr().wrapping_add(to), n) };
                assert_eq!(seen, zeroed);
            }
            let mut seen = bytes();
            // SAFETY: the stretch ends in the array.
            unsafe { memset(seen.as_mut_ptr().wrapping_add(to), 0x57f, n) };
            assert_eq!(seen, valued);
        }
        find_all();
    }
}
