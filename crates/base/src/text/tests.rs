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
