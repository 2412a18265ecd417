//! Reading an option's value: text in, a number or a [`Mistake`] out.

use crate::config::Unit;
use crate::config::words::is_word;
use core::fmt;

/// Why an option or a limit was refused.
///
/// ```
/// use freestone::{Freestone, options::Mistake};
///
/// assert_eq!(Freestone.set_option("misuse", "shrug"), Err(Mistake::NotAWord));
/// assert_eq!(Freestone.set_option("bin_max", "0"), Err(Mistake::OutOfRange));
/// assert_eq!(Freestone.set_option("report", "/tmp/report"), Err(Mistake::OnlyAtStart));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// There is no such option.
    UnknownKey,
    /// The value is not a number (of bytes, of milliseconds, of blocks).
    NotANumber,
    /// The value is not one of the option's words.
    NotAWord,
    /// The value is outside the option's bounds, or a path that is too long.
    OutOfRange,
    /// The limit is below what is in use already.
    BelowUse,
    /// The option is only read at the start, from the environment or the link-time symbol.
    OnlyAtStart,
    /// The option can be set before the first allocation only.
    TooLate,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "there is no such option",
            Self::NotANumber => "not a number (only bytes may end in k, m or g)",
            Self::NotAWord => "not one of its words",
            Self::OutOfRange => "out of range",
            Self::BelowUse => "more memory than that is in use",
            Self::OnlyAtStart => "it is only read at the start, from the environment or the link-time symbol",
            Self::TooLate => "it can be set before the first allocation only",
        })
    }
}

/// The names and values in a text of `name=value` with commas between.
pub(crate) fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|&byte| byte == b',').filter(|option| !option.is_empty()).map(pair)
}

/// Name and value of `name=value`; without `=` there is no value.
pub(crate) fn pair(option: &[u8]) -> (&[u8], &[u8]) {
    match option.iter().position(|&byte| byte == b'=') {
        Some(at) => (&option[..at], &option[at + 1..]),
        None => (option, &[]),
    }
}

/// The number that `text` stands for.
pub(super) fn value(unit: Unit, text: &[u8]) -> Result<usize, Mistake> {
    match unit {
        Unit::Milliseconds | Unit::Blocks | Unit::Allocations => digits(text),
        Unit::Bytes => {
            let (number, shift) = match text.split_last() {
                Some((b'k' | b'K', rest)) => (rest, 10),
                Some((b'm' | b'M', rest)) => (rest, 20),
                Some((b'g' | b'G', rest)) => (rest, 30),
                _ => (text, 0),
            };
            digits(number)?.checked_mul(1 << shift).ok_or(Mistake::OutOfRange)
        }
        Unit::Words(words) => {
            let mut words = words.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii_start);
            words.position(|word| is_word(text, word)).ok_or(Mistake::NotAWord)
        }
        Unit::Path => Ok(0),
    }
}

fn digits(text: &[u8]) -> Result<usize, Mistake> {
    if text.is_empty() {
        return Err(Mistake::NotANumber);
    }
    text.iter().try_fold(0usize, |number, byte| match byte {
        b'0'..=b'9' => number
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(usize::from(byte - b'0')))
            .ok_or(Mistake::OutOfRange),
        _ => Err(Mistake::NotANumber),
    })
}
