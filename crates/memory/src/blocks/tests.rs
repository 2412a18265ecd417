#![allow(unsafe_code)]
use super::*;
use crate::routines::find_all;
use core::array;

const LEN: usize = 200;

fn bytes() -> [u8; LEN] {
    array::from_fn(|at| at as u8)
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

/// Before the C library's functions are known and after.
#[test]
fn bytes_are_copied_up_to_a_value_or_a_number() {
    for round in 0..2 {
        for (last, most) in (0..12).flat_map(|last| (0..12).map(move |most| (last, most))) {
            let from: [u8; 12] = array::from_fn(|at| if at == last { 0x7f } else { 1 });
            let n = most.min(last + 1);
            let mut expected = [b'.'; 12];
            expected[..n].copy_from_slice(&from[..n]);
            let mut to = [b'.'; 12];
            let start = to.as_mut_ptr();
            // SAFETY: both arrays have as many bytes.
            let end = unsafe { memccpy(start, from.as_ptr(), 0x57f, most) };
            let meant = if last < most { start.wrapping_add(n) } else { ptr::null_mut() };
            assert_eq!((to, end), (expected, meant), "{last} in {most}, {round}");
        }
        find_all();
    }
}
