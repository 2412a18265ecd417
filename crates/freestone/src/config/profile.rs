//! Profiles: named sets of options, for users who know their program better than the options.

use crate::config::{NEVER_MS, key};

/// A named set of options, which the option `profile` selects by its name.
///
/// ```
/// use freestone::options::{OPTIONS, PROFILES};
///
/// for profile in PROFILES {
///     for &(index, value) in profile.options {
///         println!("{}: {}={value}", profile.name, OPTIONS[index].key);
///     }
/// }
/// assert_eq!(PROFILES[0].name, "balanced");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Its name: a word of the option `profile`.
    pub name: &'static str,
    /// Which programs it is for, and what it does.
    pub purpose: &'static str,
    /// The options it sets: index in [`OPTIONS`](crate::options::OPTIONS), and value as text.
    pub options: &'static [(usize, &'static str)],
}

/// Every profile, in the order of the option's words.
///
/// ```
/// use freestone::Freestone;
/// use freestone::options::PROFILES;
///
/// assert!(PROFILES.iter().any(|profile| profile.name == "lean"));
/// Freestone.set_option("profile", "lean")?;
/// assert_eq!(Freestone.option("decay_ms"), Some(100));
/// # Ok::<(), freestone::options::Mistake>(())
/// ```
pub static PROFILES: &[Profile] = &[
    Profile { name: "balanced", purpose: "the defaults, for everything not below", options: &[] },
    Profile {
        name: "throughput",
        purpose: "batch work on a dedicated machine: keeps memory and requests huge pages",
        options: &[
            (key::DECAY_MS, "10000"),
            (key::DIRTY_MAX, "256m"),
            (key::THP, "on"),
            (key::SPAN_SIZE, "256k"),
            (key::BIN_MAX, "16384"),
        ],
    },
    Profile {
        name: "lean",
        purpose: "many processes on a small machine: returns memory quickly",
        options: &[
            (key::DECAY_MS, "100"),
            (key::DIRTY_MAX, "1m"),
            (key::BACKGROUND, "auto"),
            (key::THP, "off"),
            (key::BIN_MAX, "64"),
        ],
    },
    Profile {
        name: "realtime",
        purpose: "deadlines: allocates physical pages in advance, returns nothing on the caller's time, has no background thread",
        options: &[
            (key::DECAY_MS, "4294967295"),
            (key::DIRTY_MAX, "18446744073709551615"),
            (key::BACKGROUND, "off"),
            (key::PREFAULT, "populate"),
            (key::THP, "off"),
        ],
    },
    Profile {
        name: "production",
        purpose: "services that run for long: finds misuse of small blocks by sampling; the defaults otherwise",
        options: &[(key::GUARD_SAMPLE, "20000")],
    },
];

const _: () = assert!(NEVER_MS == 4_294_967_295);
