//! Reading an option's value. Pure; every input gives a number or a [`Mistake`].

use crate::config::Unit;
use core::fmt;

/// What is wrong with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// There is no such option.
    UnknownKey,
    /// The value is not a number (of bytes, of milliseconds, of blocks).
    NotANumber,
    /// The value is not one of the option's words.
    NotAWord,
    /// The value is a number that makes no sense here.
    OutOfRange,
    /// A limit below what is in use already.
    BelowUse,
    /// The option counts only while the allocator starts: in the environment or the link-time symbol.
    OnlyAtStart,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "there is no such option",
            Self::NotANumber => "not a number (bytes may end in k, m or g)",
            Self::NotAWord => "not one of its words",
            Self::OutOfRange => "out of range",
            Self::BelowUse => "more than that is in use already",
            Self::OnlyAtStart => "it counts only in the environment or the link-time symbol",
        })
    }
}

/// The number that `text` stands for.
pub(super) fn value(unit: Unit, text: &[u8]) -> Result<usize, Mistake> {
    match unit {
        Unit::Milliseconds | Unit::Blocks => digits(text),
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
            words.iter().position(|word| word.as_bytes().eq_ignore_ascii_case(text)).ok_or(Mistake::NotAWord)
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
