//! Profiles: named sets of options, for users who know their program better than the options.

use crate::config::NEVER_MS;
use crate::config::texts::PURPOSES;

/// A named set of options, which the option `profile` selects by its name.
///
/// ```
/// use freestone::options::PROFILES;
///
/// for profile in PROFILES {
///     println!("{}: {}", profile.name, profile.options);
/// }
/// assert_eq!((PROFILES[4].name, PROFILES[4].options), ("production", "guard_sample=20000"));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Profile {
    /// Its name: a word of the option `profile`.
    pub name: &'static str,
    /// The options it sets, as the link-time symbol has them: `key=value`, with commas between.
    pub options: &'static str,
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
    Profile { name: "balanced", options: "" },
    Profile { name: "throughput", options: "decay_ms=10000,dirty_max=256m,thp=on,span_size=256k,bin_max=16384" },
    Profile { name: "lean", options: "decay_ms=100,dirty_max=1m,background=auto,thp=off,bin_max=64" },
    Profile {
        name: "realtime",
        options: "decay_ms=4294967295,dirty_max=18446744073709551615,background=off,prefault=populate,thp=off",
    },
    Profile { name: "production", options: "guard_sample=20000" },
];

const _: () = assert!(NEVER_MS == 4_294_967_295);
