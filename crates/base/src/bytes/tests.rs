#![allow(unsafe_code)]
use super::{chunks, chunks_mut, copy, fill, word_is};

const LEN: usize = 96;

/// How far apart the offsets and the lengths are that are tried: both odd, so that each offset in a word occurs.
const EVERY_START: usize = if cfg!(miri) { 5 } else { 1 };
/// See [`EVERY_START`].
const EVERY_LENGTH: usize = if cfg!(miri) { 17 } else { 1 };

fn bytes() -> [u8; LEN] {
    core::array::from_fn(|at| at as u8)
}

#[test]
fn bytes_are_copied_whichever_way_they_overlap() {
    let starts = || (0..24).step_by(EVERY_START);
    for (from, to) in starts().flat_map(|from| starts().map(move |to| (from, to))) {
        for n in (0..=LEN - 24).step_by(EVERY_LENGTH) {
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
    let lengths = || (0..=LEN - 24).step_by(EVERY_LENGTH);
    for (to, n) in (0..24).step_by(EVERY_START).flat_map(|to| lengths().map(move |n| (to, n))) {
        let (mut filled, mut expected) = (bytes(), bytes());
        expected[to..to + n].fill(0xa5);
        // SAFETY: the stretch ends in the array.
        unsafe { fill(filled.as_mut_ptr().wrapping_add(to), 0xa5, n) };
        assert_eq!(filled, expected, "{n} bytes at {to}");
    }
}

#[test]
fn bytes_are_cut_into_whole_pieces_and_a_rest() {
    let mut text = *b"abcdefgh";
    assert_eq!(chunks::<3>(&text), (&[*b"abc", *b"def"][..], &b"gh"[..]));
    assert_eq!(chunks::<8>(&text[..7]), (&[][..], &b"abcdefg"[..]));
    chunks_mut::<3>(&mut text).0[1] = *b"DEF";
    chunks_mut::<3>(&mut text).1[0] = b'G';
    assert_eq!(&text, b"abcDEFGh");
    let (pieces, rest) = chunks_mut::<2>(&mut text);
    assert_eq!((pieces.len(), rest.len()), (4, 0));
}

#[test]
fn a_word_is_compared_with_a_constant_at_its_offset() {
    let words = [7_u32, 0xFFFF_FFF0, 9];
    let object = words.as_ptr().cast();
    // SAFETY: the array has three aligned words of 4 bytes.
    assert!(unsafe { word_is::<0, 7>(object) } && unsafe { word_is::<4, 0xFFFF_FFF0>(object) });
    // SAFETY: as above.
    assert!(!unsafe { word_is::<8, 7>(object) });
}
