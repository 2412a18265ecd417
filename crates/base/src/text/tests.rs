use super::*;
extern crate std;

use std::vec;
use std::vec::Vec;

#[test]
fn text_is_kept_and_cut_at_the_end_of_the_buffer() {
    let mut text = FixedText::<8>::new();
    write!(text, "{}-{}", 12, 34).unwrap();
    assert_eq!(text.as_bytes(), b"12-34");
    write!(text, "56789").unwrap();
    assert_eq!(text.as_bytes(), b"12-34567");
}

#[test]
fn a_character_is_kept_in_as_many_bytes_as_it_has() {
    let mut text = FixedText::<8>::new();
    "aö€".chars().for_each(|character| text.writer().write_char(character).unwrap());
    assert_eq!(text.as_bytes(), "aö€".as_bytes());
}

#[test]
fn pieces_of_any_length_are_the_whole_text_and_all_but_the_last_are_as_long_as_the_room() {
    for room_bytes in 1..20 {
        let mut got = Vec::new();
        let mut lengths = Vec::new();
        let mut sink = |piece: &[u8]| {
            got.extend_from_slice(piece);
            lengths.push(piece.len());
            Ok(())
        };
        let mut room = vec![0; room_bytes];
        let mut text = Pieces::new(&mut room, &mut sink);
        write!(text, "ac€{:>7}", 12).unwrap();
        text.flush().unwrap();
        assert_eq!(got, "ac€     12".as_bytes(), "in pieces of {room_bytes} bytes");
        assert!(lengths.iter().rev().skip(1).all(|&n| n == room_bytes), "{lengths:?}");
        assert!(lengths.last().is_some_and(|&n| n > 0 && n <= room_bytes), "{lengths:?}");
    }
}

#[test]
fn a_refused_piece_ends_the_text_and_a_room_of_no_bytes_takes_none() {
    let mut n_calls = 0;
    let mut sink = |_: &[u8]| {
        n_calls += 1;
        Err(fmt::Error)
    };
    let mut room = [0; 4];
    let mut text = Pieces::new(&mut room, &mut sink);
    assert!(write!(text, "{} words, {} words", 4, 5).is_err());
    assert_eq!(n_calls, 1);
    let mut sink = |_: &[u8]| panic!("there is no room for a piece");
    assert!(Pieces::new(&mut [], &mut sink).write_str("text").is_err());
}

#[test]
fn a_line_ends_with_a_newline_also_where_the_buffer_is_full() {
    for (written, line) in [("abc", &b"abc\n"[..]), ("abcdefg", b"abcdefg\n"), ("abcdefghij", b"abcdefg\n")] {
        let mut text = FixedText::<8>::new();
        text.push(written.as_bytes());
        text.end_line();
        assert_eq!(text.as_bytes(), line);
    }
    let mut none = FixedText::<0>::new();
    none.end_line();
    assert_eq!(none.as_bytes(), b"");
}
