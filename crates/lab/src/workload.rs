//! The built-in workloads: each a process of its own that calls `malloc` through the C symbol and prints one JSON record.
//!
//! | module | owns |
//! |---|---|
//! | [`heap`] | the C symbols, and the stand-in without an allocator |
//! | [`params`] | named parameters |
//! | [`meter`], [`counters`], [`process_view`] | what a section took |
//! | [`entry`] | the process: parse, run, print |
//! | the others | one workload each; their headers say what they model, where they come from, and what they do not show |

mod counters;
pub(crate) mod entry;
pub(crate) mod heap;
mod meter;
pub(crate) mod params;
pub(crate) mod process_view;
pub(crate) mod random;

mod alloc_free_pair;
mod binary_trees;
mod burst_keep_every_20th;
mod calloc_huge;
mod central_refill;
mod containers;
mod false_sharing;
mod fragmentation_phases;
mod free_only_consumer;
mod front;
mod idle_after_burst;
mod idle_threads;
mod large_churn;
mod larson;
mod latency_tail;
mod linear_pool;
mod pool_calloc;
mod producer_consumer;
pub(crate) mod programs;
mod random_mixed;
mod realloc_growth;
mod shifting_sizes;
mod startup;
mod threads_come_and_go;
mod tiny_hot;
mod tlsf_heap;
mod tlsf_peers;
mod web_server;

use crate::record::Latency;
use meter::Meter;
use params::{Param, Params};
use std::collections::BTreeMap;

/// What a workload is, and how to run it.
pub(crate) struct Workload {
    /// Its name.
    pub(crate) name: &'static str,
    /// One sentence: what program it stands for.
    pub(crate) models: &'static str,
    /// What must not be concluded from it.
    pub(crate) hides: &'static str,
    /// What a reader looks at first.
    pub(crate) shows: Shows,
    /// Its parameters.
    pub(crate) params: &'static [Param],
    /// Runs it on the C symbols.
    pub(crate) run: Run,
    /// Runs the same loop without an allocator, where that means something.
    pub(crate) hollow: Option<Run>,
}

/// A workload's body.
pub(crate) type Run = fn(&Params, &mut Meter) -> Outcome;

/// The first thing to look at in a workload's results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shows {
    /// How long it took.
    Time,
    /// How much memory it held.
    Memory,
    /// How long single operations took.
    Latency,
}

/// What a workload's body reports beside what the meter measured.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Operations done in the section.
    pub(crate) operations: u64,
    /// Of what was read back.
    pub(crate) checksum: u64,
    /// Further figures, by name with unit.
    pub(crate) figures: BTreeMap<String, f64>,
    /// Latencies of single operations.
    pub(crate) latency: Option<Latency>,
}

impl Outcome {
    /// An outcome of `operations` operations with a checksum.
    pub(crate) fn new(operations: u64, checksum: u64) -> Self {
        Self { operations, checksum, ..Self::default() }
    }

    /// Adds a figure.
    pub(crate) fn with(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

/// Every workload, in the order of the tables.
pub(crate) static ALL: &[&Workload] = &[
    &random_mixed::WORKLOAD,
    &tiny_hot::WORKLOAD,
    &alloc_free_pair::WORKLOAD,
    &pool_calloc::WORKLOAD,
    &web_server::WORKLOAD,
    &binary_trees::WORKLOAD,
    &central_refill::WORKLOAD,
    &containers::STRINGS,
    &containers::VECTORS,
    &containers::MAP,
    &larson::WORKLOAD,
    &producer_consumer::WORKLOAD,
    &threads_come_and_go::WORKLOAD,
    &false_sharing::ACTIVE,
    &false_sharing::PASSIVE,
    &large_churn::WORKLOAD,
    &calloc_huge::WORKLOAD,
    &realloc_growth::WORKLOAD,
    &fragmentation_phases::WORKLOAD,
    &shifting_sizes::WORKLOAD,
    &free_only_consumer::WORKLOAD,
    &idle_after_burst::WORKLOAD,
    &idle_threads::WORKLOAD,
    &burst_keep_every_20th::WORKLOAD,
    &latency_tail::WORKLOAD,
    &startup::WORKLOAD,
    &programs::PYTHON3,
    &programs::SQLITE3,
    &programs::GCC,
    &programs::GIT,
    &programs::REDIS,
];

/// The workload called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Workload> {
    ALL.iter().copied().find(|workload| workload.name == name)
}
