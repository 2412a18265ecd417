extern crate std;
use super::*;
use proptest::prelude::*;
use std::string::{String, ToString};

/// A name in which `%p` stands for `<p>`, and `%w` for `<w>`.
fn expanded(name: &str) -> String {
    let value = |letter, text: &mut FileName| {
        [b'p', b'w'].contains(&letter) && write!(text, "<{}>", char::from(letter)).is_ok()
    };
    let mut text = FileName::new();
    expand(&mut text, name.as_bytes(), &value);
    String::from_utf8(text.as_bytes().to_vec()).expect("a text").trim_end_matches('\0').to_string()
}

#[test]
fn a_letter_behind_a_percent_sign_stands_for_something_and_two_signs_for_one() {
    for (name, wanted, has) in [
        ("", "", false),
        ("a/b", "a/b", false),
        ("%p", "<p>", true),
        ("a%pb%p%w", "a<p>b<p><w>", true),
        ("%%p", "%p", false),
        ("%%%p", "%<p>", true),
        ("%%%%p", "%%p", false),
        ("50%%done%", "50%done%", false),
        ("%x%", "%x%", false),
        ("%é%p", "%é<p>", true),
        ("%", "%", false),
    ] {
        assert_eq!((expanded(name).as_str(), super::has(name.as_bytes(), b'p')), (wanted, has), "{name}");
    }
}

#[test]
fn a_name_need_not_be_utf_8() {
    let value = |letter, text: &mut FileName| letter == b'p' && write!(text, "7").is_ok();
    let mut text = FileName::new();
    expand(&mut text, b"/\xff%p%\xff.%", &value);
    assert_eq!(text.as_bytes(), b"/\xff7%\xff.%\0");
}

proptest! {
    /// What the tools do with the names of folders.
    #[test]
    fn a_name_whose_signs_are_doubled_stays_as_it_is(folder in "[%pwné/]{0,20}") {
        let doubled = folder.replace('%', "%%");
        prop_assert_eq!(expanded(&doubled), folder.clone());
        prop_assert!(!super::has(doubled.as_bytes(), b'p'));
        prop_assert_eq!(expanded(&std::format!("{doubled}/%p.live")), std::format!("{folder}/<p>.live"));
    }
}
