use crate::error::FreestoneError;
use core::ops::RangeInclusive;
use core::{ffi, fmt, str};
use freestone_base::text::FixedText;

/// Expects `describe` to have a message for each of `codes`, which advises what is possible in C, too: there are no types with parameters, and no
/// fallbacks.
pub(crate) fn expect_messages_for_c(
    codes: RangeInclusive<ffi::c_int>,
    describe: fn(FreestoneError, &mut dyn fmt::Write) -> Option<fmt::Result>,
) {
    for code in codes {
        let mut text = FixedText::<256>::new();
        let error = FreestoneError { code, ..FreestoneError::NONE };
        assert!(
            describe(error, &mut text.writer()).is_some_and(|written| written.is_ok()),
            "{code} is a code of the family"
        );
        let text = str::from_utf8(text.as_bytes()).expect("a message is text");
        let only_in_rust = ["FIRST", "REGIONS", "fallback", "its type"];
        assert!(!only_in_rust.iter().any(|word| text.contains(word)), "{code}: {text}");
    }
}
