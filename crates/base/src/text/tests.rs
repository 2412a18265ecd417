use super::*;
use core::fmt::Write;

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
    "aö€".chars().for_each(|character| text.write_char(character).unwrap());
    assert_eq!(text.as_bytes(), "aö€".as_bytes());
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
