//! `freestone experiment A…E`: the five published experiments, the authors' own figures beside what was measured here.
//!
//! The published figures come from other machines, so ratios within a column are what can be compared, never a figure across columns.

mod a;
mod b;
mod c;
mod d;
mod e;
mod go;

use crate::allocator::{self, Allocator};
use crate::bench::{self, Contender, Job};
use crate::measure::Measurement;
use crate::summary::{Figure, Summary};
use crate::warning::Warning;
use crate::workload::{self, params::Scale};
use crate::{quantity, report, table};
use anyhow::{Result, bail};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// What `freestone experiment` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A: TLSF over an arena. B: HAKMEM's workloads and remedies. C: batched refill. D: pools in front of calloc. E: growth by realloc
    #[arg(value_enum, ignore_case = true)]
    which: Which,
    /// Allocators, comma-separated or repeated: NAME, or NAME=PATH.so; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds [default: 9; with --quick 8]
    #[arg(short, long)]
    rounds: Option<NonZeroUsize>,
    /// Fewer rounds
    #[arg(long)]
    quick: bool,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "120")]
    timeout: NonZeroU64,
    /// Seed of the order in which allocators run within each round: that of a results file repeats its order [default: drawn]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// Results file to write [default: freestone-results/TIME-experiment-X.jsonl]
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Do not write the HTML page
    #[arg(long)]
    no_report: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Which {
    A,
    B,
    C,
    D,
    E,
}

/// An experiment under way.
struct Experiment {
    measurement: Measurement,
    allocators: Vec<Allocator>,
    rounds: usize,
    limit: Duration,
}

/// Runs an experiment.
///
/// # Errors
/// An allocator cannot be found, or results cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let letter = ["a", "b", "c", "d", "e"][options.which as usize];
    let selection = allocator::select(&options.allocators)?;
    let mut measurement = Measurement::begin(
        &format!("experiment-{letter}"),
        options.out.as_deref(),
        options.seed,
        &selection.allocators,
    )?;
    for what in selection.missing {
        measurement.warn(Warning::Missing { what })?;
    }
    let allocators = bench::prove(&selection.allocators, &mut measurement)?;
    let Some(baseline) = allocators.first().map(|allocator| allocator.name.clone()) else {
        measurement.print_warnings();
        bail!("no allocator could be measured; the warnings above say why");
    };
    let rounds = options.rounds.map(NonZeroUsize::get).unwrap_or(if options.quick { 8 } else { 9 });
    let mut experiment =
        Experiment { measurement, allocators, rounds, limit: Duration::from_secs(options.timeout.get()) };
    match options.which {
        Which::A => a::measure(&mut experiment)?,
        Which::B => b::measure(&mut experiment)?,
        Which::C => c::measure(&mut experiment)?,
        Which::D => d::measure(&mut experiment)?,
        Which::E => e::measure(&mut experiment)?,
    }
    let mut measurement = experiment.measurement;
    let summary = measurement.finish(&baseline)?;
    bench::refuse_emptiness(&summary, &measurement)?;
    if options.json {
        bench::print_json(&summary, &measurement)?;
    } else {
        comparisons(&summary).iter().for_each(Comparison::print);
    }
    measurement.print_warnings();
    if !options.no_report {
        let page = measurement.path().with_extension("html");
        report::write(&[measurement.path()], &page)?;
        eprintln!("report:  {}", page.display());
    }
    Ok(())
}

/// A table of published and measured figures.
pub(crate) struct Comparison {
    /// What is compared.
    pub(crate) title: String,
    /// Names of the columns.
    pub(crate) header: Vec<String>,
    /// The rows, each beginning with its name.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Comparison {
    fn new(title: impl Into<String>, header: &[&str]) -> Self {
        Self { title: title.into(), header: header.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    fn print(&self) {
        println!("\n{}", self.title);
        table::print(&self.header, &self.rows, 1);
        if self.rows.iter().flatten().any(|cell| cell == bench::SAME) {
            println!(" {}: no difference seen", bench::SAME);
        }
    }
}

/// The comparisons of every experiment whose workloads are in `summary`.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    [a::comparisons, b::comparisons, c::comparisons, d::comparisons, e::comparisons]
        .into_iter()
        .flat_map(|of_one| of_one(summary))
        .filter(|comparison| !comparison.rows.is_empty())
        .collect()
}

/// Whether `subject` was measured.
fn has(summary: &Summary, subject: &str) -> bool {
    summary.subjects().iter().any(|measured| measured == subject)
}

impl Experiment {
    /// A job with its parameters in its name.
    fn job(&self, workload: &str, params: &[&str]) -> Job {
        let Some(found) = workload::find(workload) else {
            unreachable!("the experiments name built-in workloads, and {workload} is none");
        };
        let subject = [&[workload], params].concat().join(" ");
        let params = params.iter().map(|&param| param.to_owned()).collect();
        Job { workload: found, params, scale: Scale::Normal, limit: self.limit, subject }
    }

    /// Measures `jobs` under the allocators and under `more`.
    fn run(&mut self, jobs: &[Job], more: Vec<Contender>) -> Result<()> {
        let mut contenders = Contender::plain(&self.allocators);
        contenders.extend(more);
        bench::measure_all(jobs, &contenders, self.rounds, &mut self.measurement)
    }

    /// Notes that a part could not be measured, and what to do about it.
    fn missing(&mut self, what: &str) -> Result<()> {
        self.measurement.warn(Warning::Missing { what: what.into() })
    }
}

/// The system's allocator under another name, with parameters: a heap inside the process.
fn inside(name: &str, params: &[&str]) -> Contender {
    Contender {
        allocator: Allocator { name: name.into(), ..Allocator::system() },
        params: params.iter().map(|&param| param.to_owned()).collect(),
    }
}

/// A cell as text; a dash where nothing was measured.
fn shown(summary: &Summary, subject: &str, allocator: &str, figure: Figure) -> String {
    let show = match figure {
        Figure::Time | Figure::Cpu => quantity::time,
        Figure::PeakRss => quantity::bytes,
        Figure::Faults => |faults: f64| quantity::count(faults as u64),
        Figure::Instructions | Figure::Cycles | Figure::Retired | Figure::CacheMisses => quantity::digits,
    };
    summary.cell(subject, allocator, figure).map_or_else(|| "–".into(), |cell| show(cell.median))
}
