//! `freestone bench`: built-in workloads under every allocator at hand, in interleaved rounds.
//!
//! Order of runs: workload by workload, round by round; within a round every allocator once, and the first one changes from round to round,
//! so that what the machine does over time falls on all alike. Before that each allocator proves itself: the workload's process says which file
//! answers its `malloc`, and this must be the library it was started with.

mod instructions;
mod tables;

pub(crate) use tables::{print_json, verdict};

use crate::allocator::{self, Allocator};
use crate::child::{self, End};
use crate::measure::Measurement;
use crate::record::WorkloadRecord;
use crate::results::Outcome;
use crate::summary::LOOP_ONLY;
use crate::warning::Warning;
use crate::workload::params::{Params, Scale};
use crate::workload::{self, Workload};
use crate::{checkout, interrupt, names, progress, report};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// What `freestone bench` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Workloads to run; all of them when none is named (with --quick, a dozen)
    workloads: Vec<String>,
    /// Allocators, comma-separated or repeated: NAME, or NAME=PATH.so; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds [default: 9; with --quick 7, with --full 15]
    #[arg(short, long)]
    rounds: Option<usize>,
    /// Short runs of a dozen workloads: a minute or two
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Long runs and many rounds: for figures that are to be quoted
    #[arg(long)]
    full: bool,
    /// A parameter of a workload
    #[arg(short, long = "param", value_name = "WORKLOAD.NAME=VALUE")]
    params: Vec<String>,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// Count instructions in an operation too, under valgrind's callgrind
    #[arg(long)]
    instructions: bool,
    /// Measure each allocator against itself: every line should say "no difference seen"
    #[arg(long)]
    self_test: bool,
    /// Results file to write [default: freestone-results/TIME-bench.jsonl]
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Do not write the HTML page
    #[arg(long)]
    no_report: bool,
    /// Print the summary as JSON instead of tables
    #[arg(long)]
    json: bool,
    /// List the workloads and their parameters
    #[arg(short, long)]
    list: bool,
}

/// Workloads of a quick run: one of each kind.
const QUICK: [&str; 12] = [
    "random_mixed",
    "tiny_hot",
    "web_server",
    "string_churn",
    "hash_map",
    "larson",
    "producer_consumer",
    "large_churn",
    "realloc_growth",
    "fragmentation_phases",
    "latency_tail",
    "startup",
];

/// Name under which an allocator runs against itself.
const AGAIN: &str = " again";

impl Options {
    fn scale(&self) -> Scale {
        match (self.quick, self.full) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Full,
            _ => Scale::Normal,
        }
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(match self.scale() {
            Scale::Quick => 7,
            Scale::Normal => 9,
            Scale::Full => 15,
        })
    }

    fn selected(&self) -> Result<Vec<&'static Workload>> {
        if self.workloads.is_empty() {
            let quick = |workload: &&&Workload| !self.quick || QUICK.contains(&workload.name);
            return Ok(workload::ALL.iter().filter(quick).copied().collect());
        }
        let known = || workload::ALL.iter().map(|workload| workload.name);
        self.workloads
            .iter()
            .map(|name| workload::find(name).with_context(|| names::unknown("workload", name, known())))
            .collect()
    }

    /// The parameters given for `workload`, checked.
    fn params_of(&self, workload: &'static Workload) -> Result<Vec<String>> {
        let prefix = format!("{}.", workload.name);
        let own: Vec<String> =
            self.params.iter().filter_map(|param| param.strip_prefix(&prefix)).map(str::to_owned).collect();
        Params::resolve(workload.params, self.scale(), &own).with_context(|| format!("workload {}", workload.name))?;
        Ok(own)
    }
}

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

/// Runs the command.
///
/// # Errors
/// Names that do not exist, or results that cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    if options.list {
        tables::print_list();
        return Ok(());
    }
    let jobs = jobs(options)?;
    let mut selection = allocator::select(&options.allocators)?;
    if options.self_test {
        selection.allocators = against_themselves(selection.allocators);
    }
    let mut measurement = Measurement::begin("bench", options.out.as_deref(), &selection.allocators)?;
    for what in selection.missing {
        measurement.warn(Warning::Missing { what })?;
    }
    let allocators = prove(&selection.allocators, &mut measurement)?;
    let Some(baseline) = allocators.first().map(|allocator| allocator.name.clone()) else {
        bail!("no allocator could be measured; the warnings in {} say why", measurement.path().display());
    };
    measure_all(&jobs, &Contender::plain(&allocators), options.rounds(), &mut measurement)?;
    if options.instructions && !interrupt::asked() {
        instructions::count_all(&jobs, &allocators, &mut measurement)?;
    }
    let summary = measurement.finish(&baseline)?;
    if options.json {
        tables::print_json(&summary, &measurement)?;
    } else {
        tables::print(&summary);
    }
    measurement.print_warnings();
    if !options.no_report {
        let page = measurement.path().with_extension("html");
        report::write(&[measurement.path()], &page)?;
        eprintln!("report:  {}", page.display());
    }
    Ok(())
}

fn jobs(options: &Options) -> Result<Vec<Job>> {
    let selected = options.selected()?;
    for param in &options.params {
        let named = |workload: &&'static Workload| param.starts_with(&format!("{}.", workload.name));
        if !selected.iter().any(named) {
            bail!("--param {param}: write it as WORKLOAD.NAME=VALUE, with a workload that is run");
        }
    }
    selected
        .into_iter()
        .map(|workload| {
            Ok(Job {
                workload,
                params: options.params_of(workload)?,
                scale: options.scale(),
                limit: Duration::from_secs(options.timeout),
                subject: workload.name.to_owned(),
            })
        })
        .collect()
}

fn against_themselves(allocators: Vec<Allocator>) -> Vec<Allocator> {
    let first = allocators.into_iter().next().unwrap_or_else(Allocator::system);
    let again = Allocator { name: format!("{}{AGAIN}", first.name), ..first.clone() };
    vec![first, again]
}

/// Runs a trifle under each allocator: drops those that do not work or are not in the process, and fills in their versions.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn prove(allocators: &[Allocator], measurement: &mut Measurement) -> Result<Vec<Allocator>> {
    let Some(workload) = workload::find("random_mixed") else {
        unreachable!("random_mixed is a built-in workload");
    };
    let trifle = Job {
        workload,
        params: vec!["ops=10000".into()],
        scale: Scale::Quick,
        limit: Duration::from_secs(30),
        subject: "proof".into(),
    };
    let mut proven = Vec::new();
    for allocator in allocators {
        match run_once(&trifle, allocator, false) {
            Ok(record) if is_expected(&record, allocator) => {
                proven.push(Allocator { version: Some(record.allocator_version), ..allocator.clone() });
            }
            Ok(record) => measurement.warn(Warning::NotInProcess {
                subject: "every workload".into(),
                allocator: allocator.name.clone(),
                why: format!("malloc was answered by {}", record.malloc_library),
            })?,
            Err(error) => measurement.give_up("every workload", &allocator.name, format!("{error:#}"))?,
        }
    }
    measurement.describe_allocators(&proven)?;
    Ok(proven)
}

fn is_expected(record: &WorkloadRecord, allocator: &Allocator) -> bool {
    match &allocator.library {
        Some(library) => PathBuf::from(&record.malloc_library) == *library,
        None => record.malloc_library.contains("libc.so") || record.malloc_library.contains("libc-"),
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
    let bar = progress::bar(jobs.iter().map(|job| rounds_of(job, rounds) * contenders.len()).sum::<usize>() as u64);
    for job in jobs {
        if job.workload.hollow.is_some() && !interrupt::asked() {
            if let Ok(record) = run_once(job, &Allocator::system(), true) {
                measurement.keep(&job.subject, LOOP_ONLY, 0, Outcome::Workload(Box::new(record)))?;
            }
        }
        for round in 0..rounds_of(job, rounds) {
            for turn in 0..contenders.len() {
                let contender = &contenders[(turn + round) % contenders.len()];
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
