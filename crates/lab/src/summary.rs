//! From runs to comparisons: per subject and allocator the medians, and the ratios to the baseline.

use crate::allocator::Allocator;
use crate::launch::Launched;
use crate::record::{Counters, Latency, WorkloadRecord};
use crate::results::{Outcome, Run};
use crate::statistics::{self, Ratio};
use crate::warning::Warning;
use serde::Serialize;
use std::collections::BTreeMap;

/// The name under which the loop without an allocator is recorded.
pub(crate) const LOOP_ONLY: &str = "(loop only)";

/// Relative spread of rounds above which a warning is due.
const NOISY: f64 = 0.10;

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Figure {
    /// Nanoseconds: of one operation, or of the whole command.
    Time,
    /// Processor time, user and system, likewise.
    Cpu,
    /// Largest resident size in bytes.
    PeakRss,
    /// Page faults of the process.
    Faults,
    /// Instructions in one operation, counted by callgrind.
    Instructions,
    /// Processor cycles in one operation, by the hardware's counter.
    Cycles,
    /// Instructions in one operation, by the hardware's counter.
    Retired,
    /// Cache misses in one operation, by the hardware's counter.
    CacheMisses,
}

impl Figure {
    /// What it is called in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cpu => "processor time",
            Self::PeakRss => "peak memory",
            Self::Faults => "page faults",
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::Retired => "instructions retired",
            Self::CacheMisses => "cache misses",
        }
    }
}

/// One cell: a figure of one allocator on one subject.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    /// Median over the rounds.
    pub(crate) median: f64,
    /// Every round.
    pub(crate) rounds: Vec<f64>,
    /// Against the baseline; `None` for the baseline itself and where there is no pair.
    pub(crate) ratio: Option<Ratio>,
}

/// All that is known of one subject under one allocator.
#[derive(Clone, Debug, Default)]
struct Series {
    runs: BTreeMap<usize, Outcome>,
}

/// Comparisons over a set of runs.
pub(crate) struct Summary {
    baseline: String,
    subjects: Vec<String>,
    allocators: Vec<String>,
    series: BTreeMap<(String, String), Series>,
    figures: Vec<Run>,
    labels: BTreeMap<String, String>,
}

impl Summary {
    /// Of `runs`, against `baseline`. Subjects and allocators keep the order in which they first appear.
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
            // Instruction counts are kept beside the rounds, not among them.
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

    /// The same, with the versions these allocators stated, and in their order: runs come in an order drawn by chance. What is none of them, but a
    /// heap inside the process or an option under test, comes behind them by name.
    pub(crate) fn with_versions(mut self, allocators: &[Allocator]) -> Self {
        self.labels = allocators.iter().map(|allocator| (allocator.name.clone(), allocator.label())).collect();
        let place = |name: &str| allocators.iter().position(|one| one.name == name).unwrap_or(usize::MAX);
        self.allocators.sort_by(|one, other| (place(one), one).cmp(&(place(other), other)));
        self
    }

    /// How tables name an allocator: with its version, where it is known.
    pub(crate) fn label(&self, allocator: &str) -> String {
        self.labels.get(allocator).map_or_else(|| allocator.to_owned(), String::clone)
    }

    /// The label above a column of figures: the version on a line of its own.
    pub(crate) fn heading(&self, allocator: &str) -> String {
        let label = self.label(allocator);
        match label.strip_prefix(allocator).and_then(|rest| rest.strip_prefix(' ')) {
            Some(version) => format!("{allocator}\n{version}"),
            None => label,
        }
    }

    /// What was measured.
    pub(crate) fn subjects(&self) -> &[String] {
        &self.subjects
    }

    /// The allocators, the baseline first.
    pub(crate) fn allocators(&self) -> &[String] {
        &self.allocators
    }

    /// One cell; `None` when the figure was not measured.
    pub(crate) fn cell(&self, subject: &str, allocator: &str, figure: Figure) -> Option<Cell> {
        let ours = self.figures(subject, allocator, figure);
        let rounds: Vec<f64> = ours.values().copied().collect();
        let median = statistics::median(&rounds)?;
        let ratio =
            if allocator == self.baseline { None } else { self.ratio(subject, allocator, &self.baseline, figure) };
        Some(Cell { median, rounds, ratio })
    }

    /// The figure of one allocator over that of another, round by round; `None` where there is no pair.
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

    /// Why there are no hardware counters; `None` where there are some, or no workload was run.
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

    /// A figure an experiment kept beside the workloads'.
    pub(crate) fn kept_figure(&self, subject: &str, allocator: &str) -> Option<f64> {
        let kept = self.figures.iter().find(|run| run.subject == subject && run.allocator == allocator);
        kept.and_then(|run| if let Outcome::Figure { value, .. } = run.outcome { Some(value) } else { None })
    }

    /// Median of a workload's own figure; `None` where it has none of this name.
    pub(crate) fn own_figure(&self, subject: &str, allocator: &str, name: &str) -> Option<f64> {
        let values: Vec<f64> =
            self.records(subject, allocator).iter().filter_map(|record| record.figures.get(name).copied()).collect();
        statistics::median(&values)
    }

    /// The median latencies of a workload, of each allocator that has some.
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

    /// Doubts that the figures themselves give rise to.
    pub(crate) fn doubts(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for subject in &self.subjects {
            for allocator in &self.allocators {
                let times: Vec<f64> = self.figures(subject, allocator, Figure::Time).values().copied().collect();
                let spread = statistics::spread(&times);
                if spread > NOISY {
                    warnings.push(Warning::NoisyRounds {
                        subject: subject.clone(),
                        allocator: allocator.clone(),
                        spread_percent: (spread * 100.0).round() as u32,
                    });
                }
                if self.checksum(subject, allocator) != self.checksum(subject, &self.baseline)
                    && self.checksum(subject, allocator).is_some()
                    && self.checksum(subject, &self.baseline).is_some()
                {
                    warnings.push(Warning::ResultsDiffer { subject: subject.clone(), allocator: allocator.clone() });
                }
            }
        }
        warnings
    }

    fn checksum(&self, subject: &str, allocator: &str) -> Option<u64> {
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
        Outcome::Instructions { instructions, operations } if figure == Figure::Instructions => {
            Some(*instructions as f64 / (*operations).max(1) as f64)
        }
        Outcome::Instructions { .. } | Outcome::Figure { .. } => None,
    }
}

fn of_workload(record: &WorkloadRecord, figure: Figure) -> Option<f64> {
    let operations = record.operations.max(1) as f64;
    match figure {
        Figure::Time => Some(record.wall_ns as f64 / operations),
        Figure::Cpu => Some((record.user_ns + record.system_ns) as f64 / operations),
        Figure::PeakRss => record.peak_rss_bytes.map(|bytes| bytes as f64),
        Figure::Faults => Some(record.process_faults as f64),
        Figure::Instructions => None,
        Figure::Cycles | Figure::Retired | Figure::CacheMisses => match record.counters {
            Counters::Counted { cycles, .. } if figure == Figure::Cycles => Some(cycles as f64 / operations),
            Counters::Counted { instructions, .. } if figure == Figure::Retired => {
                Some(instructions as f64 / operations)
            }
            Counters::Counted { cache_misses, .. } => Some(cache_misses as f64 / operations),
            Counters::Absent(_) => None,
        },
    }
}

fn of_command(launched: &Launched, figure: Figure) -> Option<f64> {
    match figure {
        Figure::Time => Some(launched.wall_ns as f64),
        Figure::Cpu => Some((launched.user_ns + launched.system_ns) as f64),
        Figure::PeakRss => Some(launched.peak_rss_bytes as f64),
        Figure::Faults => Some(launched.minor_faults as f64),
        Figure::Instructions | Figure::Cycles | Figure::Retired | Figure::CacheMisses => None,
    }
}
