//! Rounds of workloads: every contender runs once in each round, in a random order, each run in a process of its own.

use crate::allocator::description::Allocator;
use crate::measure::measurement::Measurement;
use crate::measure::order;
use crate::measure::summary::LOOP_ONLY;
use crate::process::preload::Preload;
use crate::process::{interrupt, workload_run};
use crate::progress;
use crate::results::outcome::Outcome;
use crate::workload::definition::Workload;
use crate::workload::entry::NULL_ALLOCATOR;
use crate::workload::params::Scale;
use crate::workload::workload_record::WorkloadRecord;
use anyhow::Result;
use indicatif::ProgressBar;
use std::time::Duration;

/// Most rounds of a workload that waits: what remains after a wait hardly varies between rounds, and waiting takes long.
const MOST_ROUNDS_OF_WAITING: usize = 3;

/// One workload with its parameters, ready to run.
pub(crate) struct Job {
    /// The workload.
    pub(crate) workload: &'static Workload,
    /// Its parameters, as `name=value`.
    pub(crate) params: Vec<String>,
    /// How much it does.
    pub(crate) scale: Scale,
    /// How long one run may take.
    pub(crate) limit: Duration,
    /// Its name in results.
    pub(crate) subject: String,
}

impl Job {
    /// The same job with more parameters.
    fn with(&self, params: &[String]) -> Self {
        let params = self.params.iter().chain(params).cloned().collect();
        Self { params, subject: self.subject.clone(), ..*self }
    }

    /// The number of its rounds if `rounds` are requested.
    fn rounds(&self, rounds: usize) -> usize {
        let waits = self.workload.params.iter().any(|param| matches!(param.name, "wait_ms" | "idle_ms"));
        if waits { rounds.min(MOST_ROUNDS_OF_WAITING) } else { rounds }
    }

    /// The arguments of its process, after `workload`.
    fn arguments(&self) -> Vec<String> {
        let scale = match self.scale {
            Scale::Quick => Some("--quick"),
            Scale::Full => Some("--full"),
            Scale::Normal => None,
        };
        let mut arguments = vec![self.workload.name.to_owned()];
        arguments.extend(scale.map(str::to_owned));
        arguments.extend(self.params.iter().cloned());
        arguments
    }

    fn run(&self, allocator: &Allocator) -> Result<WorkloadRecord> {
        workload_run::run(&self.arguments(), allocator.preload(), self.limit)
    }

    fn run_on_null_allocator(&self) -> Result<WorkloadRecord> {
        let arguments = [self.arguments(), vec![NULL_ALLOCATOR.to_owned()]].concat();
        workload_run::run(&arguments, Preload::NONE, self.limit)
    }
}

/// An allocator in a measurement, and the parameters it adds to every job: experiments compare heaps inside the process too.
pub(crate) struct Contender {
    /// The allocator, under the name that it has in tables.
    pub(crate) allocator: Allocator,
    /// Parameters that it adds to every job.
    pub(crate) params: Vec<String>,
}

impl Contender {
    /// The allocators, without additional parameters.
    pub(crate) fn plain(allocators: &[Allocator]) -> Vec<Self> {
        allocators.iter().map(|allocator| Self { allocator: allocator.clone(), params: Vec::new() }).collect()
    }

    /// The C library's allocator under another name, with parameters that make the workload use a heap inside its process.
    pub(crate) fn inside(name: &str, params: &[&str]) -> Self {
        Self {
            allocator: Allocator { name: name.into(), ..Allocator::system() },
            params: params.iter().map(|&param| param.to_owned()).collect(),
        }
    }
}

/// Runs every job under every contender, round by round, and records the outcomes.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn measure_all(
    jobs: &[Job],
    contenders: &[Contender],
    rounds: usize,
    measurement: &mut Measurement,
) -> Result<()> {
    measurement.doubt_rounds(rounds, contenders.len())?;
    let bar = progress::bar(jobs.iter().map(|job| job.rounds(rounds) * contenders.len()).sum::<usize>() as u64);
    for job in jobs {
        measure_job(job, contenders, rounds, &bar, measurement)?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Runs one job under every contender, round by round, until a signal asks the lab to stop.
fn measure_job(
    job: &Job,
    contenders: &[Contender],
    rounds: usize,
    bar: &ProgressBar,
    measurement: &mut Measurement,
) -> Result<()> {
    if job.workload.run_on_null.is_some()
        && !interrupt::asked()
        && let Ok(record) = job.run_on_null_allocator()
    {
        measurement.keep(&job.subject, LOOP_ONLY, 0, Outcome::Workload(Box::new(record)))?;
    }
    for round in 0..job.rounds(rounds) {
        for turn in order::of_round(measurement.seed, &job.subject, round, contenders.len()) {
            if interrupt::asked() {
                return Ok(());
            }
            let contender = &contenders[turn];
            bar.set_message(format!("{} under {}", job.subject, contender.allocator.name));
            measure_one(job, contender, round, measurement)?;
            bar.inc(1);
        }
    }
    Ok(())
}

fn measure_one(job: &Job, contender: &Contender, round: usize, measurement: &mut Measurement) -> Result<()> {
    let name = &contender.allocator.name;
    if measurement.is_given_up(&job.subject, name) {
        return Ok(());
    }
    match job.with(&contender.params).run(&contender.allocator) {
        Ok(record) => measurement.keep(&job.subject, name, round, Outcome::Workload(Box::new(record))),
        Err(_) if interrupt::asked() => Ok(()),
        Err(error) => measurement.give_up(&job.subject, name, format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::catalogue;

    fn job(name: &str, params: &[&str]) -> Job {
        let params = params.iter().map(|&param| param.to_owned()).collect();
        let workload = catalogue::find(name).unwrap();
        Job { workload, params, scale: Scale::Quick, limit: Duration::from_secs(1), subject: name.into() }
    }

    #[test]
    fn a_workload_that_waits_has_three_rounds_at_most() {
        assert_eq!([job("idle_threads", &[]).rounds(9), job("idle_after_burst", &[]).rounds(9)], [3, 3]);
        assert_eq!([job("idle_threads", &[]).rounds(2), job("tiny_hot", &[]).rounds(9)], [2, 9]);
    }

    #[test]
    fn the_parameters_of_a_contender_follow_those_of_the_job() {
        let contender = Contender::inside("a heap", &["heap=1"]);
        let job = job("alloc_free_pair", &["size=8"]).with(&contender.params);
        assert_eq!(job.arguments(), ["alloc_free_pair", "--quick", "size=8", "heap=1"]);
        assert_eq!((contender.allocator.name.as_str(), contender.allocator.library), ("a heap", None));
    }
}
