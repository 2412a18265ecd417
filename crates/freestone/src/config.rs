//! Constants and options: their only home.
//!
//! One table ([`OPTIONS`]) is what the parser, `docs/tuning.md` and `freestone options` are made of. An option comes, the last
//! one winning, from the environment (`FREESTONE_KEY=value`; ignored when the process is more privileged than its caller),
//! from the link-time symbol `freestone_options` (a C string, `key=value,key=value`), or from the API.
//!
//! Layer: beside `size_class`; knows nothing of memory.

use freestone_base::sync::{AtomicU32, AtomicUsize, Ordering};

mod parse;
pub use parse::Mistake;

/// What an option's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number of milliseconds.
    Milliseconds,
    /// Bytes, with an optional suffix `k`, `m` or `g` (powers of 1024).
    Bytes,
    /// A whole number of blocks.
    Blocks,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A path, which only the report of `freestone run` uses.
    Path,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Name in the link-time symbol and the API; in the environment it is upper-case after `FREESTONE_`.
    pub key: &'static str,
    /// What its value looks like.
    pub unit: Unit,
    /// Its value when nobody says otherwise.
    pub default: &'static str,
    /// Values that make sense.
    pub range: &'static str,
    /// What it changes.
    pub effect: &'static str,
}

/// Index of each option in [`OPTIONS`].
pub mod key {
    /// See [`super::OPTIONS`].
    pub const DECAY_MS: usize = 0;
    /// See [`super::OPTIONS`].
    pub const DIRTY_MAX: usize = 1;
    /// See [`super::OPTIONS`].
    pub const BIN_MAX: usize = 2;
    /// See [`super::OPTIONS`].
    pub const MISUSE: usize = 3;
    /// See [`super::OPTIONS`].
    pub const REPORT: usize = 4;
}

/// Every option there is.
pub static OPTIONS: [OptionSpec; 5] = [
    OptionSpec {
        key: "decay_ms",
        unit: Unit::Milliseconds,
        default: "1000",
        range: "0 to 4294967294",
        effect: "free memory untouched for this long goes back to the operating system",
    },
    OptionSpec {
        key: "dirty_max",
        unit: Unit::Bytes,
        default: "16m",
        range: "0 to the address space",
        effect: "free memory kept for reuse, whatever its age; the bound is this or a tenth of what is in use, if that is more",
    },
    OptionSpec {
        key: "bin_max",
        unit: Unit::Blocks,
        default: "4096",
        range: "1 to 65536",
        effect: "free blocks of one size class that a thread keeps at most; large blocks are bounded by 1 MiB as well",
    },
    OptionSpec {
        key: "misuse",
        unit: Unit::Words(&["abort", "report", "ignore"]),
        default: "abort",
        range: "abort, report, ignore",
        effect: "what follows a double or foreign free: a message and abort, a message, or nothing",
    },
    OptionSpec {
        key: "report",
        unit: Unit::Path,
        default: "",
        range: "a file",
        effect: "statistics are appended to this file, one JSON line at start and one at exit",
    },
];

/// What follows a wrong free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisusePolicy {
    /// Say so and abort.
    Abort,
    /// Say so and go on, leaving the block alone.
    Report,
    /// Go on, leaving the block alone.
    Ignore,
}

/// Longest path of the report, in bytes, with its final zero.
pub const REPORT_PATH_BYTES: usize = 1024;

/// The options' values: set at start and through the API, read on slow paths.
#[derive(Debug)]
pub struct Settings {
    decay_ms: AtomicU32,
    dirty_max_bytes: AtomicUsize,
    bin_max_blocks: AtomicU32,
    misuse: AtomicU32,
}

/// A thread keeps at most this much of one size class: bounds [`key::BIN_MAX`] for large blocks.
const BIN_MAX_BYTES: usize = 1 << 20;

/// Fewest blocks that the byte bound leaves a bin.
const BIN_MAX_LEAST: usize = 32;

/// A bin starts with room for a page of blocks, between these bounds: a program that never holds more than that of a class never flushes.
const BIN_START_BYTES: usize = 64 * 1024;
/// See [`BIN_START_BYTES`].
const BIN_START: core::ops::RangeInclusive<usize> = 8..=512;

impl Settings {
    /// The defaults of [`OPTIONS`] (a test holds the two together).
    #[must_use]
    pub const fn new() -> Self {
        Self {
            decay_ms: AtomicU32::new(1000),
            dirty_max_bytes: AtomicUsize::new(16 << 20),
            bin_max_blocks: AtomicU32::new(4096),
            misuse: AtomicU32::new(MisusePolicy::Abort as u32),
        }
    }

    /// Milliseconds after which dirty memory is purged.
    #[must_use]
    pub fn decay_ms(&self) -> u32 {
        self.decay_ms.load(Ordering::Relaxed)
    }

    /// Dirty bytes that may stay, whatever their age.
    #[must_use]
    pub fn dirty_max_bytes(&self) -> usize {
        self.dirty_max_bytes.load(Ordering::Relaxed)
    }

    /// Most blocks of `block_bytes` in a bin.
    #[must_use]
    pub fn bin_max(&self, block_bytes: usize) -> u32 {
        let by_bytes = (BIN_MAX_BYTES / block_bytes).max(BIN_MAX_LEAST) as u32;
        self.bin_max_blocks.load(Ordering::Relaxed).min(by_bytes)
    }

    /// Blocks of `block_bytes` that a new bin has room for.
    #[must_use]
    pub fn bin_start(&self, block_bytes: usize) -> u32 {
        let start = (BIN_START_BYTES / block_bytes).clamp(*BIN_START.start(), *BIN_START.end()) as u32;
        start.min(self.bin_max(block_bytes))
    }

    /// What follows a wrong free.
    #[must_use]
    pub fn misuse(&self) -> MisusePolicy {
        match self.misuse.load(Ordering::Relaxed) {
            0 => MisusePolicy::Abort,
            1 => MisusePolicy::Report,
            _ => MisusePolicy::Ignore,
        }
    }

    /// Sets the option `index` of [`OPTIONS`]; the path of the report is not kept here.
    ///
    /// # Errors
    /// The value is not of the option's unit; nothing has changed then.
    pub fn set(&self, index: usize, value: &[u8]) -> Result<(), Mistake> {
        let spec = OPTIONS.get(index).ok_or(Mistake::UnknownKey)?;
        let number = parse::value(spec.unit, value)?;
        match index {
            key::DECAY_MS => self.decay_ms.store(parse::narrow(number)?, Ordering::Relaxed),
            key::DIRTY_MAX => self.dirty_max_bytes.store(number, Ordering::Relaxed),
            key::BIN_MAX if !(1..=65536).contains(&number) => return Err(Mistake::OutOfRange),
            key::BIN_MAX => self.bin_max_blocks.store(parse::narrow(number)?, Ordering::Relaxed),
            key::MISUSE => self.misuse.store(parse::narrow(number)?, Ordering::Relaxed),
            _ => {}
        }
        Ok(())
    }

    /// The value of option `index` as a number: its unit's, or the place among its words. Paths are 0.
    #[must_use]
    pub fn get(&self, index: usize) -> usize {
        match index {
            key::DECAY_MS => self.decay_ms() as usize,
            key::DIRTY_MAX => self.dirty_max_bytes(),
            key::BIN_MAX => self.bin_max_blocks.load(Ordering::Relaxed) as usize,
            key::MISUSE => self.misuse.load(Ordering::Relaxed) as usize,
            _ => 0,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// The index in [`OPTIONS`] of a key as written in the link-time symbol or, upper-case, in the environment.
#[must_use]
pub fn find(key: &[u8]) -> Option<usize> {
    OPTIONS.iter().position(|spec| spec.key.as_bytes().eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests;
