//! The options: their table, their values, and how a value is read.
//!
//! The parser, `docs/tuning.md` and `freestone options` are all made from one table, [`OPTIONS`]. Which source of options overrides which,
//! [`options`](crate::options) says. Constants that are no option are in the module whose decision they are, with the evidence for them.
//!
//! | file | owns |
//! |---|---|
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
pub(crate) mod words;

pub(crate) use nearest::nearest;
pub use parse::Mistake;
pub use profile::PROFILES;
pub use settings::{Harden, Settings};
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
///         Unit::Words(words) => words[0],
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
    /// One of these words.
    Words(&'static [&'static str]),
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
    /// Its value unless it is set, as text; empty for no value.
    pub default: &'static str,
    /// The smallest and the largest value, in the option's unit; (0, 0) for options that are not numbers.
    pub bounds: (usize, usize),
    /// What it changes.
    pub effect: &'static str,
}

impl OptionSpec {
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
        unit: Unit::Words(&["balanced", "throughput", "lean", "realtime", "production"]),
        default: "balanced",
        bounds: (0, 0),
        effect: "sets several other options, as the table of profiles says; explicit options override the profile",
    },
    OptionSpec {
        key: "decay_ms",
        unit: Unit::Milliseconds,
        default: "1000",
        bounds: (0, NEVER_MS),
        effect: "free memory that has not been used for this long is returned to the operating system, a little of it after a fiftieth of that; 4294967295: never",
    },
    OptionSpec {
        key: "dirty_max",
        unit: Unit::Bytes,
        default: "16m",
        bounds: (0, usize::MAX),
        effect: "the most free memory that is kept for reuse, whatever its age: this, or a tenth of the memory in use if that is more",
    },
    OptionSpec {
        key: "background",
        unit: Unit::Words(&["auto", "on", "off"]),
        default: "auto",
        bounds: (0, 0),
        effect: "whether a thread of the allocator returns free memory older than decay_ms; auto: while more than one thread of the program allocates",
    },
    OptionSpec {
        key: "purge",
        unit: Unit::Words(&["dontneed", "free"]),
        default: "dontneed",
        bounds: (0, 0),
        effect: "how memory is returned: dontneed: at once; free: when the kernel runs short, and it counts as resident until then",
    },
    OptionSpec {
        key: "thp",
        unit: Unit::Words(&["auto", "on", "off"]),
        default: "auto",
        bounds: (0, 0),
        effect: "what huge pages are requested for: auto: large blocks that grow, or that are as long as earlier ones that were densely written; on: everything; off: nothing",
    },
    OptionSpec {
        key: "prefault",
        unit: Unit::Words(&["off", "touch", "willneed", "populate"]),
        default: "off",
        bounds: (0, 0),
        effect: "how physical pages are allocated when memory is mapped instead of when it is first written: touch: by writing to it; willneed, populate: by asking the kernel",
    },
    OptionSpec {
        key: "span_size",
        unit: Unit::Bytes,
        default: "64k",
        bounds: (64 << 10, 256 << 10),
        effect: "length of the spans of size classes up to 8 KiB, rounded up to a multiple of 64k; applies to spans made from then on",
    },
    OptionSpec {
        key: "bin_max",
        unit: Unit::Blocks,
        default: "4096",
        bounds: (1, 65536),
        effect: "the most free blocks of one size class that a thread keeps; for larger classes also at most 1 MiB of them",
    },
    OptionSpec {
        key: "limit",
        unit: Unit::Bytes,
        default: "",
        bounds: (1 << 20, usize::MAX),
        effect: "soft limit: an allocation beyond it empties caches and calls the program's pressure callback first; by default 15/16 of \
                 the control group's limit",
    },
    OptionSpec {
        key: "limit_hard",
        unit: Unit::Bytes,
        default: "",
        bounds: (1 << 20, usize::MAX),
        effect: "hard limit: an allocation beyond it fails with ENOMEM; by default none",
    },
    OptionSpec {
        key: "misuse",
        unit: Unit::Words(&["abort", "report", "ignore"]),
        default: "abort",
        bounds: (0, 0),
        effect: "what happens on an invalid free (double, foreign, or inside a block): a message and abort, a message, or nothing",
    },
    OptionSpec {
        key: "report",
        unit: Unit::Path,
        default: "",
        bounds: (0, 0),
        effect: "appends statistics to this file, one JSON line at start and one at exit",
    },
    OptionSpec {
        key: "report_ms",
        unit: Unit::Milliseconds,
        default: "0",
        bounds: (0, 60_000),
        effect: "with report: appends a line at this interval as well, from the background thread; 0: never",
    },
    OptionSpec {
        key: "sandbox",
        unit: Unit::Words(&["off", "on"]),
        default: "off",
        bounds: (0, 0),
        effect: "on: after the first allocation, makes only the system calls mmap, munmap, madvise and futex (docs/sandboxes.md): no \
                 background thread, no huge pages by experience, no reading of the control group's limit, large blocks move by copying",
    },
    OptionSpec {
        key: "harden",
        unit: Unit::Words(&["off", "default", "checks", "full"]),
        default: "default",
        bounds: (0, 0),
        effect: "how much heap misuse is detected (docs/security.md): default: double frees of small blocks, misaligned frees, damaged links, and \
                 accesses behind large blocks of new memory; checks: every free is exact, blocks have canaries and wait in \
                 a quarantine before reuse, and an operation takes a few times as long; full: checks, and freed memory is cleared, all large blocks have guards, and, with libfreestone_memory.so preloaded as well, \
                 memcpy and its kin stay inside blocks; set only before the first allocation",
    },
    OptionSpec {
        key: "guard_sample",
        unit: Unit::Allocations,
        default: "",
        bounds: (1, 1 << 30),
        effect: "one small allocation in this many is placed between pages without access, and stays without access after its free: what \
                 is done to it that must not be done is reported with the stacks of its allocation, its free and its use; not in a sandbox, \
                 and not for blocks of Rust's global allocator below harden=checks; by default none",
    },
    OptionSpec {
        key: "heap_profile",
        unit: Unit::Words(&["off", "ready", "on"]),
        default: "off",
        bounds: (0, 0),
        effect: "on: samples allocations with their stacks from the start on, and writes a heap profile at exit (docs/profiling.md); ready: \
                 as on, but samples only once the program, a signal or `freestone profile PID` asks for it; not in a sandbox; set only at the start",
    },
    OptionSpec {
        key: "heap_profile_interval",
        unit: Unit::Bytes,
        default: "512k",
        bounds: (1, at_most(40)),
        effect: "with heap_profile: one byte in this many is sampled, on average; takes effect when profiling starts",
    },
    OptionSpec {
        key: "heap_profile_file",
        unit: Unit::Path,
        default: "",
        bounds: (0, 0),
        effect: "where heap profiles are written; %p stands for the number of the process, %n for that of the profile, %w for live or peak: both are written at exit \
                 if it is there; by default \
                 freestone.%p.%n.heap in the current directory",
    },
    OptionSpec {
        key: "heap_profile_signal",
        unit: Unit::Words(&["off", "usr1", "usr2"]),
        default: "off",
        bounds: (0, 0),
        effect: "with heap_profile: this signal starts profiling if it is not started, and writes a profile otherwise; only if the program does not \
                 handle the signal; set only at the start",
    },
    OptionSpec {
        key: "heap_profile_ms",
        unit: Unit::Milliseconds,
        default: "0",
        bounds: (0, 86_400_000),
        effect: "with heap_profile: writes a profile at this interval as well, while profiling is on; 0: never; set only at the start",
    },
    OptionSpec {
        key: "heap_profile_allocated",
        unit: Unit::Bytes,
        default: "0",
        bounds: (0, at_most(50)),
        effect: "with heap_profile: writes a profile as well whenever so many bytes were allocated since the last time; 0: never; takes effect when \
                 profiling starts",
    },
    OptionSpec {
        key: "heap_profile_growth",
        unit: Unit::Bytes,
        default: "0",
        bounds: (0, at_most(50)),
        effect: "with heap_profile: writes a profile as well whenever live memory exceeds, by so many bytes, what was live the last time; 0: never; \
                 takes effect when profiling starts",
    },
    OptionSpec {
        key: "record",
        unit: Unit::Path,
        default: "",
        bounds: (0, 0),
        effect: "records every call into this file (docs/recording.md); if it exists, into one with the process's number after its name; \
                 read at start, and not in a sandbox",
    },
    OptionSpec {
        key: "live",
        unit: Unit::Path,
        default: "",
        bounds: (0, 0),
        effect: "keeps a page of statistics up to date in a file, for `freestone top`: on: $XDG_RUNTIME_DIR/freestone-%p.live, or in /tmp without that \
                 variable; or an absolute path, in which %p stands for the process's number; off. Only the user may read the file, which is removed at \
                 exit; not in a sandbox",
    },
];

/// The index in [`OPTIONS`] of a key as written in the link-time symbol or, upper-case, in the environment.
#[must_use]
pub fn find(key: &[u8]) -> Option<usize> {
    OPTIONS.iter().position(|spec| spec.key.as_bytes().eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests;
