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
