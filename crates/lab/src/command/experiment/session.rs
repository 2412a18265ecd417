//! An experiment under way.

use crate::allocator::description::Allocator;
use crate::measure::measurement::Measurement;
use crate::measure::rounds::{self, Contender, Job};
use crate::workload::catalogue;
use crate::workload::params::Scale;
use anyhow::Result;
use std::time::Duration;

/// The allocator whose options and peculiarities some experiments measure.
pub(super) const FREESTONE: &str = "freestone";

/// What the parts of an experiment share.
pub(super) struct Session {
    pub(super) measurement: Measurement,
    pub(super) allocators: Vec<Allocator>,
    pub(super) rounds: usize,
    pub(super) limit: Duration,
}

impl Session {
    /// A job; its parameters are part of its name.
    pub(super) fn job(&self, workload: &str, params: &[&str]) -> Job {
        let Some(found) = catalogue::find(workload) else {
            unreachable!("the experiments name built-in workloads, and {workload} is none");
        };
        let subject = [&[workload], params].concat().join(" ");
        let params = params.iter().map(|&param| param.to_owned()).collect();
        Job { workload: found, params, scale: Scale::Normal, limit: self.limit, subject }
    }

    /// Measures `jobs` under the allocators and under `more`.
    pub(super) fn run(&mut self, jobs: &[Job], more: Vec<Contender>) -> Result<()> {
        let contenders = Contender::plain(&self.allocators).into_iter().chain(more).collect::<Vec<_>>();
        rounds::measure_all(jobs, &contenders, self.rounds, &mut self.measurement)
    }

    /// Measures `jobs` under `contenders` only.
    pub(super) fn run_among(&mut self, jobs: &[Job], contenders: &[Contender]) -> Result<()> {
        rounds::measure_all(jobs, contenders, self.rounds, &mut self.measurement)
    }

    /// Freestone, if it is among the allocators.
    pub(super) fn freestone(&self) -> Option<Allocator> {
        self.allocators.iter().find(|allocator| allocator.name == FREESTONE).cloned()
    }

    /// Records that a part is left out. `what` says which, and how to get it.
    pub(super) fn leave_out(&mut self, what: String) -> Result<()> {
        self.measurement.leave_out([what])
    }
}
