use super::*;

#[test]
fn a_word_has_the_fewest_bytes_that_hold_its_payload_and_reads_back() {
    let payloads = [(0, 1), (1, 1), (2, 2), (0x1ff, 2), (0x200, 3), (1 << 56, 8), ((1 << 57) - 1, 8)];
    for (payload, len) in payloads {
        for number in 1..16 {
            let op = Op::of(number).unwrap();
            let word = Word::new(op, payload);
            assert_eq!(word.len, len, "{payload:#x}");
            assert_eq!(Word::read(&word.bits.to_le_bytes()[..len]), Some((op, payload, len)));
            assert_eq!(Word::read(&word.bits.to_le_bytes()[..len - 1]), None, "cut short");
            assert_ne!(word.bits & 0xff, 0, "a zero byte ends a chunk");
        }
    }
}

#[test]
fn a_zero_byte_and_no_byte_are_no_word() {
    assert_eq!(Word::read(&[0, 1, 2]), None);
    assert_eq!(Word::read(&[]), None);
}
