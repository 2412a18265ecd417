//! From runs to comparisons: medians of each subject under each allocator, and ratios to the baseline.

use crate::allocator::description::Allocator;
use crate::measure::statistics::{self, Ratio};
use crate::process::command_record::CommandRecord;
use crate::results::outcome::{CacheModel, Outcome, Run};
use crate::workload::workload_record::{Counters, Latency, WorkloadRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// The name of the loop over the null allocator in results.
pub(crate) const LOOP_ONLY: &str = "(loop only)";

/// A figure that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Figure {
    /// Nanoseconds per operation, or of the whole command.
    Time,
    /// Processor time in user mode and in the kernel: nanoseconds per operation, or of the whole command.
    Cpu,
    /// Largest resident size in bytes.
    PeakRss,
    /// Bytes that a server holds a second after its load has ended.
    Settled,
    /// Page faults of the process.
    Faults,
    /// Instructions per operation, counted by callgrind.
    Instructions,
    /// Reads and writes of data per operation, counted by callgrind.
    DataReferences,
    /// Misses of the first level of callgrind's model of the caches, per operation.
    FirstLevelMisses,
    /// Misses of its last level, per operation.
    LastLevelMisses,
    /// Processor cycles per operation, from the hardware counter.
    Cycles,
    /// Instructions per operation, from the hardware counter.
    Retired,
    /// Cache misses per operation, from the hardware counter.
    CacheMisses,
}

impl Figure {
    /// Its name within a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cpu => "processor time",
            Self::PeakRss => "peak memory",
            Self::Settled => "memory after the load",
            Self::Faults => "page faults",
            Self::Instructions => "instructions",
            Self::DataReferences => "data references",
            Self::FirstLevelMisses => "first-level misses",
            Self::LastLevelMisses => "last-level misses",
            Self::Cycles => "cycles",
            Self::Retired => "instructions retired",
            Self::CacheMisses => "cache misses",
        }
    }
}

/// One figure of one allocator on one subject.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    /// Median over the rounds.
    pub(crate) median: f64,
    /// The value of each round.
    pub(crate) rounds: Vec<f64>,
    /// Ratio to the baseline; `None` for the baseline itself, and if no round has both.
    pub(crate) ratio: Option<Ratio>,
}

/// All outcomes of one subject under one allocator, by round.
#[derive(Clone, Debug, Default)]
struct Series {
    runs: BTreeMap<usize, Outcome>,
}

/// The comparisons of a set of runs.
pub(crate) struct Summary {
    baseline: String,
    subjects: Vec<String>,
    allocators: Vec<String>,
    series: BTreeMap<(String, String), Series>,
    figures: Vec<Run>,
    labels: BTreeMap<String, String>,
}

impl Summary {
    /// Compares `runs` with those of `baseline`. Subjects and allocators keep the order of their first run; the baseline comes first.
    pub(crate) fn of(runs: &[Run], baseline: &str) -> Self {
        let mut summary = Self {
            baseline: baseline.into(),
            subjects: Vec::new(),
            allocators: Vec::new(),
            series: BTreeMap::new(),
            figures: Vec::new(),
            labels: BTreeMap::new(),
        };
        for run in runs {
            if matches!(run.outcome, Outcome::Figure { .. }) {
                summary.figures.push(run.clone());
                continue;
            }
            if !summary.subjects.contains(&run.subject) {
                summary.subjects.push(run.subject.clone());
            }
            if !summary.allocators.contains(&run.allocator) && run.allocator != LOOP_ONLY {
                summary.allocators.push(run.allocator.clone());
            }
            let instructions = matches!(run.outcome, Outcome::Instructions { .. });
            // Instruction counts belong to no round.
            let round = if instructions { usize::MAX } else { run.round };
            let key = (run.subject.clone(), run.allocator.clone());
            summary.series.entry(key).or_default().runs.insert(round, run.outcome.clone());
        }
        if let Some(at) = summary.allocators.iter().position(|name| name == baseline) {
            let first = summary.allocators.remove(at);
            summary.allocators.insert(0, first);
        }
        summary
    }

    /// The same comparisons with the versions of `allocators`, and in their order, because runs come in a random order. Other contenders
    /// (heaps inside the process, options under test) follow, sorted by name. A baseline without a single run cannot be compared with: the first of them
    /// takes its place.
    pub(crate) fn with_versions(mut self, allocators: &[Allocator]) -> Self {
        self.labels = allocators.iter().map(|allocator| (allocator.name.clone(), allocator.label())).collect();
        let place = |name: &str| allocators.iter().position(|one| one.name == name).unwrap_or(usize::MAX);
        self.allocators.sort_by(|one, other| (place(one), one).cmp(&(place(other), other)));
        if let Some(first) = self.allocators.first().filter(|_| !self.allocators.contains(&self.baseline)) {
            self.baseline.clone_from(first);
        }
        self
    }

    /// The name of an allocator in tables: with its version, if it is known.
    pub(crate) fn label(&self, allocator: &str) -> String {
        self.labels.get(allocator).map_or_else(|| allocator.to_owned(), String::clone)
    }

    /// The heading of its column: the label with the version on a line of its own.
    pub(crate) fn heading(&self, allocator: &str) -> String {
        let label = self.label(allocator);
        match label.strip_prefix(allocator).and_then(|rest| rest.strip_prefix(' ')) {
            Some(version) => format!("{allocator}\n{version}"),
            None => label,
        }
    }

    /// The workloads or commands that were measured.
    pub(crate) fn subjects(&self) -> &[String] {
        &self.subjects
    }

    /// The allocators, the baseline first.
    pub(crate) fn allocators(&self) -> &[String] {
        &self.allocators
    }

    /// One cell; `None` if the figure was not measured.
    pub(crate) fn cell(&self, subject: &str, allocator: &str, figure: Figure) -> Option<Cell> {
        let ours = self.figures(subject, allocator, figure);
        let rounds: Vec<f64> = ours.values().copied().collect();
        let median = statistics::median(&rounds)?;
        let ratio =
            if allocator == self.baseline { None } else { self.ratio(subject, allocator, &self.baseline, figure) };
        Some(Cell { median, rounds, ratio })
    }

    /// The ratio of one allocator's figure to that of `base`, compared within rounds; `None` if no round has both.
    pub(crate) fn ratio(&self, subject: &str, allocator: &str, base: &str, figure: Figure) -> Option<Ratio> {
        let ours = self.figures(subject, allocator, figure);
        let base = self.figures(subject, base, figure);
        let (left, right): (Vec<f64>, Vec<f64>) =
            ours.iter().filter_map(|(round, &value)| Some((value, *base.get(round)?))).unzip();
        statistics::compare(&left, &right)
    }

    /// The records of a workload under an allocator, by round.
    pub(crate) fn records(&self, subject: &str, allocator: &str) -> Vec<&WorkloadRecord> {
        self.outcomes(subject, allocator)
            .filter_map(|outcome| match outcome {
                Outcome::Workload(record) => Some(record.as_ref()),
                _ => None,
            })
            .collect()
    }

    /// Why there are no hardware counters; `None` if there are some, or if no workload was run.
    pub(crate) fn without_counters(&self) -> Option<&str> {
        let mut runs = self.series.values().flat_map(|series| series.runs.values());
        runs.find_map(|run| match run {
            Outcome::Workload(record) => Some(match &record.counters {
                Counters::Absent(why) => Some(why.as_str()),
                Counters::Counted { .. } => None,
            }),
            _ => None,
        })?
    }

    /// The figures that were measured in another way than by a workload or a command.
    pub(crate) fn kept_figures(&self) -> &[Run] {
        &self.figures
    }

    /// A figure that an experiment measured in another way than by a workload.
    pub(crate) fn kept_figure(&self, subject: &str, allocator: &str) -> Option<f64> {
        let kept = self.figures.iter().find(|run| run.subject == subject && run.allocator == allocator);
        kept.and_then(|run| if let Outcome::Figure { value, .. } = run.outcome { Some(value) } else { None })
    }

    /// Median of the figure `name` that a workload reports; `None` if it reports no such figure.
    pub(crate) fn own_figure(&self, subject: &str, allocator: &str, name: &str) -> Option<f64> {
        let values: Vec<f64> =
            self.records(subject, allocator).iter().filter_map(|record| record.figures.get(name).copied()).collect();
        statistics::median(&values)
    }

    /// The median latencies of a workload under each allocator that has some.
    pub(crate) fn latencies(&self, subject: &str) -> Vec<(&String, Latency)> {
        self.allocators.iter().filter_map(|allocator| Some((allocator, self.latency(subject, allocator)?))).collect()
    }

    fn latency(&self, subject: &str, allocator: &str) -> Option<Latency> {
        let all: Vec<&Latency> =
            self.records(subject, allocator).into_iter().filter_map(|record| record.latency.as_ref()).collect();
        let first = (*all.first()?).clone();
        let middle = |values: Vec<f64>| statistics::median(&values).unwrap_or(0.0) as u64;
        let percentiles = first.percentiles.iter().enumerate().map(|(index, &(percentile, _))| {
            let values = all.iter().filter_map(|one| Some(one.percentiles.get(index)?.1 as f64)).collect();
            (percentile, middle(values))
        });
        Some(Latency {
            percentiles: percentiles.collect(),
            max_ns: middle(all.iter().map(|one| one.max_ns as f64).collect()),
            ..first
        })
    }

    /// Checksum of a workload under an allocator, in its first round.
    pub(crate) fn checksum(&self, subject: &str, allocator: &str) -> Option<u64> {
        self.records(subject, allocator).first().map(|record| record.checksum)
    }

    fn outcomes(&self, subject: &str, allocator: &str) -> impl Iterator<Item = &Outcome> {
        let series = self.series.get(&(subject.to_owned(), allocator.to_owned()));
        series.into_iter().flat_map(|series| series.runs.values())
    }

    fn figures(&self, subject: &str, allocator: &str, figure: Figure) -> BTreeMap<usize, f64> {
        let Some(series) = self.series.get(&(subject.to_owned(), allocator.to_owned())) else {
            return BTreeMap::new();
        };
        series.runs.iter().filter_map(|(&round, outcome)| Some((round, value(outcome, figure)?))).collect()
    }
}

fn value(outcome: &Outcome, figure: Figure) -> Option<f64> {
    match outcome {
        Outcome::Workload(record) => of_workload(record, figure),
        Outcome::Command(launched) => of_command(launched, figure),
        Outcome::Instructions { instructions, operations, model } => {
            let counted = counted(*instructions, *model, figure)?;
            Some(counted as f64 / (*operations).max(1) as f64)
        }
        Outcome::Figure { .. } => None,
    }
}

fn counted(instructions: u64, model: Option<CacheModel>, figure: Figure) -> Option<u64> {
    match figure {
        Figure::Instructions => Some(instructions),
        Figure::DataReferences => model.map(|model| model.data_references),
        Figure::FirstLevelMisses => model.map(|model| model.first_level_misses),
        Figure::LastLevelMisses => model.map(|model| model.last_level_misses),
        _ => None,
    }
}

fn of_workload(record: &WorkloadRecord, figure: Figure) -> Option<f64> {
    let operations = record.operations.max(1) as f64;
    match figure {
        Figure::Time => Some(record.wall_ns as f64 / operations),
        Figure::Cpu => Some((record.user_ns + record.system_ns) as f64 / operations),
        Figure::PeakRss => record.peak_rss_bytes.map(|bytes| bytes as f64),
        Figure::Faults => Some(record.process_faults as f64),
        Figure::Cycles | Figure::Retired | Figure::CacheMisses => match record.counters {
            Counters::Counted { cycles, .. } if figure == Figure::Cycles => Some(cycles as f64 / operations),
            Counters::Counted { instructions, .. } if figure == Figure::Retired => {
                Some(instructions as f64 / operations)
            }
            Counters::Counted { cache_misses, .. } => Some(cache_misses as f64 / operations),
            Counters::Absent(_) => None,
        },
        _ => None,
    }
}

fn of_command(launched: &CommandRecord, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Time => Some(launched.wall_ns as f64),
        Figure::Cpu => Some((launched.user_ns + launched.system_ns) as f64),
        Figure::PeakRss => Some(launched.peak_rss_bytes as f64),
        Figure::Settled => launched.settled_bytes.map(|bytes| bytes as f64),
        Figure::Faults => Some(launched.minor_faults as f64),
        _ => None,
    }
}
