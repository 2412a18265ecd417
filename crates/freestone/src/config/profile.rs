//! Profiles: named sets of options, for users who know their program better than the options.

use crate::config::texts::PURPOSES;
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
    /// The options it sets: index in [`OPTIONS`](crate::options::OPTIONS), and value as text.
    pub options: &'static [(usize, &'static str)],
}

impl Profile {
    /// Which programs it is for, and what it does.
    ///
    /// ```
    /// use freestone::options::PROFILES;
    ///
    /// assert_eq!(PROFILES[0].purpose(), "the defaults, for everything not below");
    /// ```
    #[must_use]
    pub fn purpose(&self) -> &'static str {
        let at = PROFILES.iter().position(|profile| profile.name == self.name);
        at.and_then(|at| PURPOSES.get(at)).copied().unwrap_or_default()
    }
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
    Profile { name: "balanced", options: &[] },
    Profile {
        name: "throughput",
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
        options: &[
            (key::DECAY_MS, "4294967295"),
            (key::DIRTY_MAX, "18446744073709551615"),
            (key::BACKGROUND, "off"),
            (key::PREFAULT, "populate"),
            (key::THP, "off"),
        ],
    },
    Profile { name: "production", options: &[(key::GUARD_SAMPLE, "20000")] },
];

const _: () = assert!(NEVER_MS == 4_294_967_295);
