//! The first line of a results file: everything that a reader needs to know to believe the results, or to measure them again.

use crate::allocator::description::Allocator;
use crate::allocator::option_value;
use crate::results::machine::Machine;
use crate::results::timestamp;
use serde::{Deserialize, Serialize};

/// Name of the format, in the first line of every file.
pub(crate) const FORMAT: &str = "freestone-lab-results";

/// Version of the format; files of other versions are refused.
pub(crate) const VERSION: u32 = 1;

/// What the order of runs within each round is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seed(pub(crate) u32);

/// The first line of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// [`FORMAT`].
    pub(crate) format: String,
    /// [`VERSION`].
    pub(crate) version: u32,
    /// The command line of the measurement.
    pub(crate) command: Vec<String>,
    /// Its beginning, in seconds since 1970.
    pub(crate) started_unix: u64,
    /// Version of the lab.
    pub(crate) lab: String,
    /// The machine.
    pub(crate) machine: Machine,
    /// What the order of runs is drawn from; files of older labs have none.
    #[serde(default)]
    pub(crate) seed: Option<Seed>,
    /// Options of Freestone in the lab's environment, which count in every run; files of older labs do not say.
    #[serde(default)]
    pub(crate) environment: Vec<(String, String)>,
    /// The allocators, the baseline first.
    pub(crate) allocators: Vec<Allocator>,
}

impl Header {
    /// A header for a measurement that begins now.
    pub(crate) fn new(machine: Machine, seed: Seed, allocators: &[Allocator]) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            started_unix: timestamp::now(),
            lab: env!("CARGO_PKG_VERSION").into(),
            machine,
            seed: Some(seed),
            environment: option_value::in_environment(),
            allocators: allocators.to_vec(),
        }
    }
}
