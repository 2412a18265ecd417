//! The options: their table, their values, and how a value is read.
//!
//! The parser, `docs/tuning.md` and `freestone options` are all made from one table, [`OPTIONS`]. Which source of options overrides which,
//! [`options`](crate::options) says. Constants that are no option are in the module whose decision they are, with the evidence for them.
//!
//! | file | owns |
//! |---|---|
//! | `texts` | what each option is by default and what it changes, as text |
//! | [`settings`] | the options' values while the process runs |
//! | [`profile`] | the named sets |
//! | [`words`] | values that are words |
//! | `parse` | reading a value |
//! | [`path_value`] | a value that is a path |
//! | [`report_file`] | the file of the report |
//!
//! Layer: beside `size_class`; independent of memory.
//!
//! Long because: the table has a row for each option.

use core::fmt;

mod nearest;
mod parse;
pub(crate) mod path_value;
pub(crate) mod profile;
pub(crate) mod report_file;
pub(crate) mod settings;
mod texts;
pub(crate) mod words;

pub(crate) use nearest::nearest;
pub use parse::Mistake;
pub(crate) use parse::{pair, pairs};
pub use profile::PROFILES;
pub use settings::{Harden, Settings};
use texts::TEXTS;
use words::is_word;
pub(crate) use words::{Background, HeapProfiling, MisusePolicy, Prefault, ProfileSignal, Purge, Thp};

/// What an option's value looks like.
///
/// ```
/// use freestone::options::{OPTIONS, Unit};
///
/// for option in OPTIONS {
///     let form = match option.unit {
///         Unit::Milliseconds => "milliseconds",
///         Unit::Bytes => "bytes, with k, m or g",
///         Unit::Blocks => "blocks",
///         Unit::Allocations => "allocations",
///         Unit::Words(words) => words,
///         Unit::Path => "a path",
///         _ => "a value of its own kind",
///     };
///     println!("{}: {form}", option.key);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A whole number of milliseconds.
    Milliseconds,
    /// Bytes, with an optional suffix `k`, `m` or `g` (powers of 1024).
    Bytes,
    /// A whole number of blocks.
    Blocks,
    /// A whole number of allocations.
    Allocations,
    /// One of these words, as in `"auto, on, off"`: a list in one text is less to relocate when the library is loaded.
    Words(&'static str),
    /// The path of a file.
    Path,
}

/// The description of an option: a row of [`OPTIONS`].
///
/// ```
/// use freestone::options::{OPTIONS, Unit};
///
/// let decay = OPTIONS.iter().find(|option| option.key == "decay_ms").expect("there is such an option");
/// assert_eq!(decay.unit, Unit::Milliseconds);
/// assert!(decay.bounds.0 <= 1000 && 1000 <= decay.bounds.1);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OptionSpec {
    /// Name in the link-time symbol and the API; in the environment it is in upper case after `FREESTONE_`.
    pub key: &'static str,
    /// What its value looks like.
    pub unit: Unit,
    /// The smallest and the largest value, in the option's unit; (0, 0) for options that are not numbers.
    pub bounds: (usize, usize),
}

impl OptionSpec {
    /// Its value unless it is set, as text; empty for no value.
    ///
    /// ```
    /// # use freestone::options::OPTIONS;
    /// let misuse = OPTIONS.iter().find(|option| option.key == "misuse").expect("there is such an option");
    /// assert_eq!(misuse.default(), "abort");
    /// ```
    #[must_use]
    pub fn default(&self) -> &'static str {
        self.texts().0
    }

    /// What it changes.
    ///
    /// ```
    /// # use freestone::options::OPTIONS;
    /// assert!(OPTIONS.iter().all(|option| !option.effect().is_empty()));
    /// ```
    #[must_use]
    pub fn effect(&self) -> &'static str {
        self.texts().1
    }

    fn texts(&self) -> (&'static str, &'static str) {
        find(self.key.as_bytes()).and_then(|index| TEXTS.get(index)).copied().unwrap_or_default()
    }

    /// The values it takes, as text for people: a range, or the words.
    ///
    /// ```
    /// # use freestone::options::OPTIONS;
    /// let misuse = OPTIONS.iter().find(|option| option.key == "misuse").expect("there is such an option");
    /// assert_eq!(misuse.range().to_string(), "abort, report, ignore");
    /// ```
    #[must_use]
    pub fn range(&self) -> impl fmt::Display {
        struct Range(OptionSpec);
        impl fmt::Display for Range {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match (self.0.unit, self.0.bounds) {
                    (Unit::Path, _) => f.write_str("a file"),
                    (Unit::Words(words), _) => f.write_str(words),
                    (_, (least, usize::MAX)) => write!(f, "{least} or more"),
                    (_, (least, most)) => write!(f, "{least} to {most}"),
                }
            }
        }
        Range(*self)
    }
}

/// Index of each option in [`OPTIONS`].
pub mod key {
    #![allow(missing_docs)]
    pub const PROFILE: usize = 0;
    pub const DECAY_MS: usize = 1;
    pub const DIRTY_MAX: usize = 2;
    pub const BACKGROUND: usize = 3;
    pub const PURGE: usize = 4;
    pub const THP: usize = 5;
    pub const PREFAULT: usize = 6;
    pub const SPAN_SIZE: usize = 7;
    pub const BIN_MAX: usize = 8;
    pub const LIMIT: usize = 9;
    pub const LIMIT_HARD: usize = 10;
    pub const MISUSE: usize = 11;
    pub const REPORT: usize = 12;
    pub const REPORT_MS: usize = 13;
    pub const SANDBOX: usize = 14;
    pub const HARDEN: usize = 15;
    pub const GUARD_SAMPLE: usize = 16;
    pub const HEAP_PROFILE: usize = 17;
    pub const HEAP_PROFILE_INTERVAL: usize = 18;
    pub const HEAP_PROFILE_FILE: usize = 19;
    pub const HEAP_PROFILE_SIGNAL: usize = 20;
    pub const HEAP_PROFILE_MS: usize = 21;
    pub const HEAP_PROFILE_ALLOCATED: usize = 22;
    pub const HEAP_PROFILE_GROWTH: usize = 23;
    pub const RECORD: usize = 24;
    pub const LIVE: usize = 25;
    pub const DEEPBIND: usize = 26;
}

/// Milliseconds that stand for never: the largest value of the option `decay_ms`.
///
/// ```
/// use freestone::Freestone;
/// use freestone::options::NEVER_MS;
///
/// Freestone.set_option("decay_ms", &NEVER_MS.to_string())?;
/// assert_eq!(Freestone.option("decay_ms"), Some(NEVER_MS));
/// # Ok::<(), freestone::options::Mistake>(())
/// ```
pub const NEVER_MS: usize = u32::MAX as usize;

/// The largest number of bytes that some options take, or what there is of it in an address space of 32 bits.
const fn at_most(log2: u32) -> usize {
    if log2 < usize::BITS { 1 << log2 } else { 1 << (usize::BITS - 2) }
}

/// Every option.
///
/// ```
/// use freestone::options::OPTIONS;
///
/// let names: Vec<_> = OPTIONS.iter().map(|option| option.key).collect();
/// assert!(names.contains(&"decay_ms") && names.contains(&"limit"));
/// ```
pub static OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        key: "profile",
        unit: Unit::Words("balanced, throughput, lean, realtime, production"),
        bounds: (0, 0),
    },
    OptionSpec { key: "decay_ms", unit: Unit::Milliseconds, bounds: (0, NEVER_MS) },
    OptionSpec { key: "dirty_max", unit: Unit::Bytes, bounds: (0, usize::MAX) },
    OptionSpec { key: "background", unit: Unit::Words("auto, on, off"), bounds: (0, 0) },
    OptionSpec { key: "purge", unit: Unit::Words("dontneed, free"), bounds: (0, 0) },
    OptionSpec { key: "thp", unit: Unit::Words("auto, on, off"), bounds: (0, 0) },
    OptionSpec { key: "prefault", unit: Unit::Words("off, touch, willneed, populate"), bounds: (0, 0) },
    OptionSpec { key: "span_size", unit: Unit::Bytes, bounds: (64 << 10, 256 << 10) },
    OptionSpec { key: "bin_max", unit: Unit::Blocks, bounds: (1, 65536) },
    OptionSpec { key: "limit", unit: Unit::Bytes, bounds: (1 << 20, usize::MAX) },
    OptionSpec { key: "limit_hard", unit: Unit::Bytes, bounds: (1 << 20, usize::MAX) },
    OptionSpec { key: "misuse", unit: Unit::Words("abort, report, ignore"), bounds: (0, 0) },
    OptionSpec { key: "report", unit: Unit::Path, bounds: (0, 0) },
    OptionSpec { key: "report_ms", unit: Unit::Milliseconds, bounds: (0, 60_000) },
    OptionSpec { key: "sandbox", unit: Unit::Words("off, on"), bounds: (0, 0) },
    OptionSpec { key: "harden", unit: Unit::Words("off, default, checks, full"), bounds: (0, 0) },
    OptionSpec { key: "guard_sample", unit: Unit::Allocations, bounds: (1, 1 << 30) },
    OptionSpec { key: "heap_profile", unit: Unit::Words("off, ready, on"), bounds: (0, 0) },
    OptionSpec { key: "heap_profile_interval", unit: Unit::Bytes, bounds: (1, at_most(40)) },
    OptionSpec { key: "heap_profile_file", unit: Unit::Path, bounds: (0, 0) },
    OptionSpec { key: "heap_profile_signal", unit: Unit::Words("off, usr1, usr2"), bounds: (0, 0) },
    OptionSpec { key: "heap_profile_ms", unit: Unit::Milliseconds, bounds: (0, 86_400_000) },
    OptionSpec { key: "heap_profile_allocated", unit: Unit::Bytes, bounds: (0, at_most(50)) },
    OptionSpec { key: "heap_profile_growth", unit: Unit::Bytes, bounds: (0, at_most(50)) },
    OptionSpec { key: "record", unit: Unit::Path, bounds: (0, 0) },
    OptionSpec { key: "live", unit: Unit::Path, bounds: (0, 0) },
    OptionSpec { key: "deepbind", unit: Unit::Words("off, on"), bounds: (0, 0) },
];

/// The index in [`OPTIONS`] of a key as written in the link-time symbol or, upper-case, in the environment.
#[must_use]
pub fn find(key: &[u8]) -> Option<usize> {
    OPTIONS.iter().position(|spec| is_word(key, spec.key.as_bytes()))
}

#[cfg(test)]
mod tests;
