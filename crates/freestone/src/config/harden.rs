//! The levels of the option `harden`.

use crate::config::{Mistake, OPTIONS, key, parse};
use core::str::FromStr;

/// How much heap misuse is detected: the levels of the option `harden`. Each detects what the ones before it detect.
///
/// ```
/// use freestone::options::{Harden, Mistake};
///
/// assert_eq!("checks".parse(), Ok(Harden::Checks));
/// assert_eq!("very".parse::<Harden>(), Err(Mistake::NotAWord));
/// assert!(Harden::Default < Harden::Full);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harden {
    /// What the plain data structures notice by themselves.
    Off,
    /// Links in free blocks are encoded and checked; double and misaligned frees are noticed.
    Default,
    /// Every free is exact, and blocks have canaries.
    Checks,
    /// Everything there is.
    Full,
}

impl Harden {
    /// The level that a word names.
    pub(crate) fn of_word(word: &[u8]) -> Result<Self, Mistake> {
        parse::value(OPTIONS[key::HARDEN].unit, word).map(Self::of_index)
    }

    /// The level whose word has this place among the words, from 0.
    pub(super) fn of_index(index: usize) -> Self {
        match index {
            0 => Self::Off,
            1 => Self::Default,
            2 => Self::Checks,
            _ => Self::Full,
        }
    }
}

impl FromStr for Harden {
    type Err = Mistake;

    fn from_str(word: &str) -> Result<Self, Mistake> {
        Self::of_word(word.as_bytes())
    }
}
