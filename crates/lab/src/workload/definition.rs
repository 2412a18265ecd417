//! What a workload is: its name, its parameters, and the function that runs it.

use crate::workload::meter::Meter;
use crate::workload::params::{Param, Params};
use crate::workload::workload_record::Latency;
use std::collections::BTreeMap;

/// A built-in workload.
pub(crate) struct Workload {
    /// Its name on the command line and in results.
    pub(crate) name: &'static str,
    /// The kind of program it models, in one sentence.
    pub(crate) models: &'static str,
    /// What it does not show.
    pub(crate) hides: &'static str,
    /// The figure to look at first.
    pub(crate) shows: PrimaryFigure,
    /// Its parameters.
    pub(crate) params: &'static [Param],
    /// Runs it against `malloc`.
    pub(crate) run: Body,
    /// Runs the same loop against the null allocator; `None` where that would measure nothing useful.
    pub(crate) run_on_null: Option<Body>,
}

/// The function that runs a workload.
pub(crate) type Body = fn(&Params, &mut Meter) -> Outcome;

/// The figure to look at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrimaryFigure {
    /// Time.
    Time,
    /// Resident memory.
    Memory,
    /// The latency of single operations.
    Latency,
}

/// What a workload reports in addition to what the meter measures.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Operations in the measured section.
    pub(crate) operations: u64,
    /// Checksum of everything read back.
    pub(crate) checksum: u64,
    /// Further figures; each name states the unit.
    pub(crate) figures: BTreeMap<String, f64>,
    /// Latencies of single operations.
    pub(crate) latency: Option<Latency>,
}

impl Outcome {
    /// An outcome of `operations` operations with `checksum`.
    pub(crate) fn new(operations: u64, checksum: u64) -> Self {
        Self { operations, checksum, ..Self::default() }
    }

    /// The same outcome with one more figure.
    pub(crate) fn with(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }
}
