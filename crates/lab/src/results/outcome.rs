//! One run and its outcome: a line of a results file.

use crate::process::command_record::CommandRecord;
use crate::workload::workload_record::WorkloadRecord;
use serde::{Deserialize, Serialize};

/// One run of one subject under one allocator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The workload with its parameters, or the command as one would type it.
    pub(crate) subject: String,
    /// The name of the allocator.
    pub(crate) allocator: String,
    /// The number of the round.
    pub(crate) round: usize,
    /// Its outcome.
    pub(crate) outcome: Outcome,
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The record of a workload.
    Workload(Box<WorkloadRecord>),
    /// The record of a command.
    Command(CommandRecord),
    /// What callgrind counted.
    Instructions {
        /// Instructions in the measured section.
        instructions: u64,
        /// Operations in it.
        operations: u64,
        /// What a model of the caches counted; older files have none.
        #[serde(default)]
        model: Option<CacheModel>,
    },
    /// A figure that an experiment measured in another way.
    Figure {
        /// Its name with its unit.
        name: String,
        /// Its value.
        value: f64,
    },
}

/// What a model of the caches counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CacheModel {
    /// Reads and writes of data.
    pub(crate) data_references: u64,
    /// Misses of the first level, of instructions and data.
    pub(crate) first_level_misses: u64,
    /// Misses of the last level.
    pub(crate) last_level_misses: u64,
}
