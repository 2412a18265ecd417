#![allow(unsafe_code)]
use super::*;

const LEN: usize = 32;

/// A text of `length` letters and its end, in a room of other bytes.
fn text(length: usize) -> [u8; LEN] {
    core::array::from_fn(|at| {
        if at < length {
            b'a' + at as u8
        } else if at == length {
            0
        } else {
            b'?'
        }
    })
}

#[test]
fn a_text_is_copied_with_its_end_and_nothing_behind_it() {
    for length in 0..LEN {
        let from = text(length);
        let mut expected = [b'.'; LEN];
        expected[..=length].copy_from_slice(&from[..=length]);
        type Copies = unsafe extern "C" fn(*mut u8, *const u8) -> *mut u8;
        for (copies, returned) in [(strcpy as Copies, 0), (stpcpy, length), (__stpcpy, length)] {
            let mut to = [b'.'; LEN];
            // SAFETY: the text ends in its array, and fits into the other.
            let result = unsafe { copies(to.as_mut_ptr(), from.as_ptr()) };
            assert_eq!((to, result.addr() - to.as_ptr().addr()), (expected, returned));
        }
    }
}

#[test]
fn a_room_is_filled_with_a_text_and_zeros_to_its_end() {
    for (length, room) in (0..LEN).flat_map(|length| (0..=LEN).map(move |room| (length, room))) {
        let from = text(length);
        let n = length.min(room);
        let mut expected = [b'.'; LEN];
        expected[..room].fill(0);
        expected[..n].copy_from_slice(&from[..n]);
        type Copies = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;
        for (copies, returned) in [(strncpy as Copies, 0), (stpncpy, n)] {
            let mut to = [b'.'; LEN];
            // SAFETY: the text ends in its array, and the other has the room.
            let result = unsafe { copies(to.as_mut_ptr(), from.as_ptr(), room) };
            assert_eq!((to, result.addr() - to.as_ptr().addr()), (expected, returned), "{length} in {room}");
        }
    }
}

#[test]
fn a_text_is_appended_up_to_its_end_or_a_number_of_bytes() {
    for (length, most) in (0..12).flat_map(|length| (0..14).map(move |most| (length, most))) {
        let from = text(length);
        let expected = |n: usize| {
            let mut to = text(5);
            to[5..5 + n].copy_from_slice(&from[..n]);
            to[5 + n] = 0;
            to
        };
        let (mut whole, mut part) = (text(5), text(5));
        // SAFETY: both texts end in their arrays, and together fit into one.
        unsafe { strcat(whole.as_mut_ptr(), from.as_ptr()) };
        assert_eq!(whole, expected(length));
        // SAFETY: as above.
        unsafe { strncat(part.as_mut_ptr(), from.as_ptr(), most) };
        assert_eq!(part, expected(length.min(most)), "{most} of {length}");
    }
}
