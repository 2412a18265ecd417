//! Profiles: named sets of options, for those who know what their program is and not what the options mean.

use crate::config::{NEVER_MS, key};

/// A profile: its name, as in the words of the option `profile`, and the options it sets.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Whom it is for.
    pub purpose: &'static str,
    /// Options and their values, as the parser reads them.
    pub options: &'static [(usize, &'static str)],
}

/// Every profile, in the order of the option's words.
pub static PROFILES: [Profile; 4] = [
    Profile { name: "balanced", purpose: "everything else: the defaults", options: &[] },
    Profile {
        name: "throughput",
        purpose: "batch work on a machine of its own: memory is kept, and huge pages are asked for",
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
        purpose: "many processes on a small machine: memory goes back at once",
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
        purpose: "deadlines: memory has its pages before it is used, nothing is given back on the caller's time, no thread of ours runs",
        options: &[
            (key::DECAY_MS, "4294967295"),
            (key::DIRTY_MAX, "18446744073709551615"),
            (key::BACKGROUND, "off"),
            (key::PREFAULT, "populate"),
            (key::THP, "off"),
        ],
    },
];

const _: () = assert!(NEVER_MS == 4_294_967_295);
