use super::*;

#[test]
fn a_canary_is_right_whatever_part_of_it_is_looked_at_and_each_wrong_byte_is_found() {
    let mut block = [0u8; 64];
    for size in 0..=60 {
        let range = range(size, 60);
        write(&mut block[range.clone()], size, 0x1234_5678_9abc_def0);
        assert_eq!(damage(&block[range.clone()], size, 0x1234_5678_9abc_def0), None);
        for at in range.clone() {
            for wrong in [0, b'A', 127] {
                let before = core::mem::replace(&mut block[at], wrong);
                assert_eq!(damage(&block[range.clone()], size, 0x1234_5678_9abc_def0), Some(at));
                block[at] = before;
            }
        }
    }
}

#[test]
fn a_canary_is_no_longer_than_its_bound_and_ends_where_the_room_ends() {
    assert_eq!(range(10, 1000), 10..10 + MOST_BYTES);
    assert_eq!(range(10, 12), 10..12);
    assert!(range(20, 12).is_empty());
}

#[test]
fn a_window_is_whole_if_its_last_bytes_are_whatever_is_before_them() {
    let word = 0x1234_5678_9abc_def0;
    for end in MOST_BYTES..60 {
        let mut window = [0; MOST_BYTES];
        for n in 0..=MOST_BYTES {
            write_window(&mut window, end, n, word);
            assert_eq!(damage(&window[MOST_BYTES - n..], end - n, word), None);
            assert!(window[..MOST_BYTES - n].iter().all(|byte| *byte == 0), "what is before stays");
        }
        assert_eq!(u64::from_le_bytes(*window.last_chunk().unwrap()), word_at(end - 8, word));
        for n in 0..=MOST_BYTES {
            for at in 0..MOST_BYTES {
                window[at] ^= 1;
                assert_eq!(is_whole(&window, end, n, word), at < MOST_BYTES - n, "{n} bytes before {end}, {at} wrong");
                window[at] ^= 1;
            }
            assert!(is_whole(&window, end, n, word));
        }
    }
}
