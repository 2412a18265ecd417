//! Rounds: every contender once a round, in an order drawn by chance, each run a process of its own.

use crate::allocator::Allocator;
use crate::child::{self, End};
use crate::measure::Measurement;
use crate::record::WorkloadRecord;
use crate::results::Outcome;
use crate::summary::LOOP_ONLY;
use crate::workload::Workload;
use crate::workload::params::Scale;
use crate::{checkout, interrupt, progress};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Duration;

/// One workload with its parameters, ready to run.
pub(crate) struct Job {
    /// The workload.
    pub(crate) workload: &'static Workload,
    /// Its parameters, as `name=value`.
    pub(crate) params: Vec<String>,
    /// How much it does.
    pub(crate) scale: Scale,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// What to call it in results.
    pub(crate) subject: String,
}

impl Job {
    /// The same job with more parameters.
    fn with(&self, params: &[String]) -> Self {
        let params = self.params.iter().chain(params).cloned().collect();
        Self { params, subject: self.subject.clone(), ..*self }
    }
}

/// An allocator in a measurement, with the parameters that go with it: experiments compare heaps inside the process too.
pub(crate) struct Contender {
    /// The allocator, under the name it has in tables.
    pub(crate) allocator: Allocator,
    /// Parameters it adds to every job.
    pub(crate) params: Vec<String>,
}

impl Contender {
    /// Allocators as they are.
    pub(crate) fn plain(allocators: &[Allocator]) -> Vec<Self> {
        allocators.iter().map(|allocator| Self { allocator: allocator.clone(), params: Vec::new() }).collect()
    }
}

/// Runs every job under every contender, round by round, and keeps what came of it.
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
    let bar = progress::bar(jobs.iter().map(|job| rounds_of(job, rounds) * contenders.len()).sum::<usize>() as u64);
    for job in jobs {
        if job.workload.hollow.is_some()
            && !interrupt::asked()
            && let Ok(record) = run_once(job, &Allocator::system(), true)
        {
            measurement.keep(&job.subject, LOOP_ONLY, 0, Outcome::Workload(Box::new(record)))?;
        }
        for round in 0..rounds_of(job, rounds) {
            for turn in measurement.seed.order(&job.subject, round, contenders.len()) {
                let contender = &contenders[turn];
                bar.set_message(format!("{} under {}", job.subject, contender.allocator.name));
                measure_one(job, contender, round, measurement)?;
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn measure_one(job: &Job, contender: &Contender, round: usize, measurement: &mut Measurement) -> Result<()> {
    let name = &contender.allocator.name;
    if interrupt::asked() || measurement.is_given_up(&job.subject, name) {
        return Ok(());
    }
    match run_once(&job.with(&contender.params), &contender.allocator, false) {
        Ok(record) => measurement.keep(&job.subject, name, round, Outcome::Workload(Box::new(record))),
        Err(_) if interrupt::asked() => Ok(()),
        Err(error) => measurement.give_up(&job.subject, name, format!("{error:#}")),
    }
}

/// What is left after a wait hardly varies from round to round, and waiting takes long: three rounds show it.
fn rounds_of(job: &Job, rounds: usize) -> usize {
    let waits = job.workload.params.iter().any(|param| matches!(param.name, "wait_ms" | "idle_ms"));
    if waits { rounds.min(3) } else { rounds }
}

/// Runs `job` once under `allocator`.
///
/// # Errors
/// It cannot be started, fails, takes too long, or prints no record.
pub(crate) fn run_once(job: &Job, allocator: &Allocator, hollow: bool) -> Result<WorkloadRecord> {
    let mut command = Command::new(checkout::own_executable()?);
    command.args(arguments(job, hollow));
    prepare(&mut command, allocator);
    let finished = child::run(&mut command, job.limit).context("the workload's process could not be started")?;
    let said = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
    match finished.end {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => bail!("ended with {status}: {said}"),
        End::TimedOut => bail!("took longer than {} s and was ended; raise --timeout", job.limit.as_secs()),
        End::Interrupted => bail!("interrupted"),
    }
    serde_json::from_slice(&finished.stdout).with_context(|| format!("printed no record: {said}"))
}

/// The workload's command line, after the lab's own path.
fn arguments(job: &Job, hollow: bool) -> Vec<String> {
    let scale = match job.scale {
        Scale::Quick => Some("--quick"),
        Scale::Full => Some("--full"),
        Scale::Normal => None,
    };
    let mut arguments = vec!["workload".to_owned(), job.workload.name.to_owned()];
    arguments.extend(scale.map(str::to_owned));
    arguments.extend(hollow.then(|| "--hollow".to_owned()));
    arguments.extend(job.params.iter().cloned());
    arguments
}

/// Puts the allocator and its options into the command's environment.
pub(crate) fn prepare(command: &mut Command, allocator: &Allocator) {
    command.envs(allocator.environment.iter().map(|(key, value)| (key, value)));
    match &allocator.library {
        Some(library) => command.env("LD_PRELOAD", library),
        None => command.env_remove("LD_PRELOAD"),
    };
}
