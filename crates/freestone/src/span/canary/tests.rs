use super::*;

const WORD: u64 = 0x1234_5678_9abc_def0;

#[test]
fn each_wrong_byte_of_a_canary_is_found() {
    let mut block = [0u8; 64];
    for size in (0..=60).step_by(if cfg!(miri) { 11 } else { 1 }) {
        let range = range(size, 60);
        write(&mut block[range.clone()], WORD);
        assert_eq!(damage(&block[range.clone()], WORD), None);
        for at in range.clone() {
            for wrong in [0, b'A', 127] {
                let before = core::mem::replace(&mut block[at], wrong);
                assert_eq!(damage(&block[range.clone()], WORD), Some(at - size));
                block[at] = before;
            }
        }
    }
}

#[test]
fn of_several_wrong_bytes_the_first_is_found() {
    let mut canary = [0; MOST_BYTES];
    write(&mut canary, WORD);
    (canary[3], canary[9]) = (1, 1);
    assert_eq!(damage(&canary, WORD), Some(3));
}

#[test]
fn a_canary_is_no_longer_than_its_bound_and_ends_where_the_room_ends() {
    assert_eq!(range(10, 1000), 10..10 + MOST_BYTES);
    assert_eq!(range(10, 12), 10..12);
    assert!(range(20, 12).is_empty());
}

#[test]
fn a_window_is_whole_if_its_last_bytes_are_whatever_is_before_them() {
    for n in 0..=MOST_BYTES {
        let (mut window, mut begun) = ([0; MOST_BYTES], [7; MOST_BYTES]);
        write_window(&mut window, n, WORD);
        assert!(window[..MOST_BYTES - n].iter().all(|byte| *byte == 0), "what is before stays");
        begin_window(&mut begun, n, WORD);
        assert_eq!(window, begun);
        assert_eq!(damage(&window[MOST_BYTES - n..], WORD), None);
        for at in 0..MOST_BYTES {
            window[at] ^= 1;
            assert_eq!(is_whole(&window, n, WORD), at < MOST_BYTES - n, "{n} bytes, {at} wrong");
            window[at] ^= 1;
        }
        assert!(is_whole(&window, n, WORD));
    }
}

#[test]
fn of_the_last_eight_bytes_of_a_canary_as_many_are_looked_at_as_it_has() {
    for n in 0..=MOST_BYTES {
        let mut window = [7; MOST_BYTES];
        write_window(&mut window, n, WORD);
        let late = |window: &Window| u64::from_le_bytes(*window.last_chunk().expect("it has eight bytes"));
        assert!(is_late_whole(late(&window), n, WORD));
        for at in 8..MOST_BYTES {
            window[at] ^= 1;
            assert_eq!(is_late_whole(late(&window), n, WORD), at < MOST_BYTES - n, "{n} bytes, {at} wrong");
            window[at] ^= 1;
        }
    }
}
