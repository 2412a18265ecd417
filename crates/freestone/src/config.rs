//! Constants and options: their only home.
//!
//! One table ([`OPTIONS`]) is what the parser, `docs/tuning.md` and `freestone options` are made of. An option comes, the last
//! one winning, from the environment (`FREESTONE_KEY=value`; ignored when the process is more privileged than its caller),
//! from the link-time symbol `freestone_options` (a C string, `key=value,key=value`), or from the API. The option `profile` names a
//! set of others ([`PROFILES`]), which count as if they had been said first.
//!
//! | file | owns |
//! |---|---|
//! | [`settings`] | the options' values while the process runs |
//! | [`profile`] | the named sets |
//! | `parse` | reading a value |
//!
//! Layer: beside `size_class`; knows nothing of memory.

use core::fmt;

mod parse;
pub(crate) mod profile;
pub(crate) mod settings;

pub use parse::Mistake;
pub use profile::PROFILES;
pub use settings::Settings;
pub(crate) use settings::{Background, MisusePolicy, Prefault, Purge, Thp};

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
    /// The least and the most that make sense, of those that are numbers.
    pub bounds: (usize, usize),
    /// What it changes.
    pub effect: &'static str,
}

impl OptionSpec {
    /// The values that make sense, for people.
    #[must_use]
    pub fn range(&self) -> impl fmt::Display {
        struct Range(OptionSpec);
        impl fmt::Display for Range {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match (self.0.unit, self.0.bounds) {
                    (Unit::Path, _) => f.write_str("a file"),
                    (Unit::Words(words), _) => words.iter().enumerate().try_for_each(|(at, word)| {
                        f.write_str(if at == 0 { "" } else { ", " })?;
                        f.write_str(word)
                    }),
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
}

/// A time that never comes: the largest an age can be compared with.
pub const NEVER_MS: usize = u32::MAX as usize;

/// Every option there is.
pub static OPTIONS: [OptionSpec; 15] = [
    OptionSpec {
        key: "profile",
        unit: Unit::Words(&["balanced", "throughput", "lean", "realtime"]),
        default: "balanced",
        bounds: (0, 0),
        effect: "sets the other options as in the table of profiles; what is said of an option itself counts more",
    },
    OptionSpec {
        key: "decay_ms",
        unit: Unit::Milliseconds,
        default: "1000",
        bounds: (0, NEVER_MS),
        effect: "free memory untouched for this long goes back to the operating system; 4294967295 is never",
    },
    OptionSpec {
        key: "dirty_max",
        unit: Unit::Bytes,
        default: "16m",
        bounds: (0, usize::MAX),
        effect: "free memory kept for reuse, whatever its age; the bound is this or a tenth of what is in use, if that is more",
    },
    OptionSpec {
        key: "background",
        unit: Unit::Words(&["auto", "on", "off"]),
        default: "auto",
        bounds: (0, 0),
        effect: "whether a thread of the allocator gives back what is older than decay_ms; auto: while the program has more than one itself",
    },
    OptionSpec {
        key: "purge",
        unit: Unit::Words(&["dontneed", "free"]),
        default: "dontneed",
        bounds: (0, 0),
        effect: "how memory goes back: at once, or (free) when the kernel is short of it; it counts as resident until then",
    },
    OptionSpec {
        key: "thp",
        unit: Unit::Words(&["auto", "on", "off"]),
        default: "auto",
        bounds: (0, 0),
        effect: "huge pages are asked for: for large blocks that grow, or whose like were written densely; for everything; for nothing",
    },
    OptionSpec {
        key: "prefault",
        unit: Unit::Words(&["off", "touch", "willneed", "populate"]),
        default: "off",
        bounds: (0, 0),
        effect: "memory is given physical pages as it is mapped, not as it is first written: by writing, or by asking the kernel",
    },
    OptionSpec {
        key: "span_size",
        unit: Unit::Bytes,
        default: "64k",
        bounds: (64 << 10, 256 << 10),
        effect: "spans of the size classes to 8 KiB are this long, rounded up to a multiple of 64k; counts from the next span on",
    },
    OptionSpec {
        key: "bin_max",
        unit: Unit::Blocks,
        default: "4096",
        bounds: (1, 65536),
        effect: "free blocks of one size class that a thread keeps at most; large blocks are bounded by 1 MiB as well",
    },
    OptionSpec {
        key: "limit",
        unit: Unit::Bytes,
        default: "",
        bounds: (1 << 20, usize::MAX),
        effect: "soft limit: beyond it caches are emptied before memory is asked for, and the program is told if it wants to be; \
                 by default 15/16 of what the control group allows",
    },
    OptionSpec {
        key: "limit_hard",
        unit: Unit::Bytes,
        default: "",
        bounds: (1 << 20, usize::MAX),
        effect: "hard limit: beyond it allocating fails with ENOMEM; none by default",
    },
    OptionSpec {
        key: "misuse",
        unit: Unit::Words(&["abort", "report", "ignore"]),
        default: "abort",
        bounds: (0, 0),
        effect: "what follows a double or foreign free: a message and abort, a message, or nothing",
    },
    OptionSpec {
        key: "report",
        unit: Unit::Path,
        default: "",
        bounds: (0, 0),
        effect: "statistics are appended to this file, one JSON line at start and one at exit",
    },
    OptionSpec {
        key: "report_ms",
        unit: Unit::Milliseconds,
        default: "0",
        bounds: (0, 60_000),
        effect: "with report: a line every so often as well, written by the background thread; 0 is never",
    },
    OptionSpec {
        key: "sandbox",
        unit: Unit::Words(&["off", "on"]),
        default: "off",
        bounds: (0, 0),
        effect: "on: no system calls but mmap, munmap, madvise and futex once the first allocation is done (docs/sandboxes.md): no \
                 background thread, no huge pages by experience, no look at the control group, large blocks move by copying",
    },
];

/// Longest path of the report, in bytes, with its final zero.
pub(crate) const REPORT_PATH_BYTES: usize = 1024;

/// The index in [`OPTIONS`] of a key as written in the link-time symbol or, upper-case, in the environment.
#[must_use]
pub fn find(key: &[u8]) -> Option<usize> {
    OPTIONS.iter().position(|spec| spec.key.as_bytes().eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests;
