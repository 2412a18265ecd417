use super::describe;
use crate::error::FreestoneError;
use freestone_base::text::FixedText;

/// What a message advises is possible in C, too: there are no types with parameters, and no fallbacks.
#[test]
fn messages_name_nothing_that_only_rust_programs_have() {
    for code in 1..=17 {
        let mut text = FixedText::<256>::new();
        let error = FreestoneError { code, ..FreestoneError::NONE };
        assert!(describe(error, &mut text).is_some_and(|written| written.is_ok()), "{code} is a code of a TLSF heap");
        let text = core::str::from_utf8(text.as_bytes()).expect("a message is text");
        let only_in_rust = ["FIRST", "REGIONS", "fallback", "its type"];
        assert!(!only_in_rust.iter().any(|word| text.contains(word)), "{code}: {text}");
    }
}
