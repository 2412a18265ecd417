//! `freestone bench`: built-in workloads under every allocator at hand, in interleaved rounds.
//!
//! Order of runs: workload by workload, round by round; within a round every allocator once, in an order drawn by chance, so that what the machine
//! does over time favours none. Before that each allocator proves itself: the workload's process says which file
//! answers its `malloc`, and this must be the library it was started with.

mod instructions;
mod rounds;
mod self_test;
mod tables;

pub(crate) use rounds::{Contender, Job, measure_all, prepare, run_once};
pub(crate) use tables::{SAME, legend, print_json, print_standing, verdict};

use crate::allocator::{self, Allocator};
use crate::measure::Measurement;
use crate::record::WorkloadRecord;
use crate::summary::Summary;
use crate::warning::Warning;
use crate::workload::params::{Params, Scale};
use crate::workload::{self, Workload, programs};
use crate::{executable, interrupt, names, report};
use anyhow::{Context, Result, bail};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `freestone bench` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Workloads to run; all of them when none is named (with --quick, a dozen)
    workloads: Vec<String>,
    /// Allocators, comma-separated or repeated: NAME, or NAME=PATH.so; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds [default: 9; with --quick 8, with --full 15]
    #[arg(short, long)]
    rounds: Option<NonZeroUsize>,
    /// Short runs of a dozen workloads: a minute for two allocators, three for all peers
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Long runs and many rounds: for figures that are to be quoted
    #[arg(long)]
    full: bool,
    /// A parameter of a workload
    #[arg(short, long = "param", value_name = "WORKLOAD.NAME=VALUE")]
    params: Vec<String>,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "60")]
    timeout: NonZeroU64,
    /// Count instructions in an operation too, under valgrind's callgrind
    #[arg(long)]
    instructions: bool,
    /// Measure the first allocator against itself; fails if a difference is claimed anywhere
    #[arg(long)]
    self_test: bool,
    /// Seed of the order in which allocators run within each round: that of a results file repeats its order [default: drawn]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
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

impl Options {
    fn scale(&self) -> Scale {
        match (self.quick, self.full) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Full,
            _ => Scale::Normal,
        }
    }

    fn rounds(&self) -> usize {
        self.rounds.map(NonZeroUsize::get).unwrap_or(match self.scale() {
            Scale::Quick => 8,
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

/// Runs the command.
///
/// # Errors
/// Names that do not exist, or results that cannot be written.
pub(crate) fn main(options: &Options) -> Result<u8> {
    if options.list {
        tables::print_list();
        return Ok(0);
    }
    let (jobs, absent) = installed(jobs(options)?);
    let mut selection = allocator::select(&options.allocators)?;
    if options.self_test {
        selection.allocators = self_test::against_themselves(selection.allocators);
    }
    let mut measurement = Measurement::begin("bench", options.out.as_deref(), options.seed, &selection.allocators)?;
    for what in selection.missing.into_iter().chain(absent) {
        measurement.warn(Warning::Missing { what })?;
    }
    let allocators = prove(&selection.allocators, &mut measurement)?;
    let Some(baseline) = allocators.first().map(|allocator| allocator.name.clone()) else {
        measurement.print_warnings();
        bail!("no allocator could be measured; the warnings above say why");
    };
    measure_all(&jobs, &Contender::plain(&allocators), options.rounds(), &mut measurement)?;
    if options.instructions && !interrupt::asked() {
        instructions::count_all(&jobs, &allocators, &mut measurement)?;
    }
    let summary = measurement.finish(&baseline)?;
    refuse_emptiness(&summary, &measurement)?;
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
    Ok(if options.self_test { self_test::judge(&summary) } else { 0 })
}

/// Without a single run there is nothing to show.
///
/// # Errors
/// There is no run, and nobody asked to stop.
pub(crate) fn refuse_emptiness(summary: &Summary, measurement: &Measurement) -> Result<()> {
    if summary.allocators().is_empty() && !interrupt::asked() {
        measurement.print_warnings();
        bail!("nothing could be measured; the warnings above say why");
    }
    Ok(())
}

/// The jobs whose programs are installed, and a sentence about each of the others.
fn installed(jobs: Vec<Job>) -> (Vec<Job>, Vec<String>) {
    let mut absent = Vec::new();
    let is_there = |job: &Job| {
        let Some((program, package)) = programs::needs(job.workload.name) else { return true };
        let found = executable::find_command(program).is_ok();
        if !found {
            absent.push(format!("{} is left out: {program} is not installed (apt install {package})", job.subject));
        }
        found
    };
    (jobs.into_iter().filter(is_there).collect(), absent)
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
                limit: Duration::from_secs(options.timeout.get()),
                subject: workload.name.to_owned(),
            })
        })
        .collect()
}

/// The least a workload can do: its record says which library answered `malloc`, and what version it states.
fn trifle(allocator: &Allocator) -> Result<WorkloadRecord> {
    let Some(workload) = workload::find("random_mixed") else {
        unreachable!("random_mixed is a built-in workload");
    };
    let job = Job {
        workload,
        params: vec!["ops=10000".into()],
        scale: Scale::Quick,
        limit: Duration::from_secs(30),
        subject: "proof".into(),
    };
    run_once(&job, allocator, false)
}

/// The version an allocator states when it runs.
///
/// # Errors
/// It does not run.
pub(crate) fn stated_version(allocator: &Allocator) -> Result<String> {
    Ok(trifle(allocator)?.allocator_version)
}

/// Runs a trifle under each allocator: drops those that do not work or are not in the process, and fills in their versions.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn prove(allocators: &[Allocator], measurement: &mut Measurement) -> Result<Vec<Allocator>> {
    let mut proven = Vec::new();
    for allocator in allocators {
        match trifle(allocator) {
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
        Some(library) => library.as_path() == Path::new(&record.malloc_library),
        None => record.malloc_library.contains("libc.so") || record.malloc_library.contains("libc-"),
    }
}
