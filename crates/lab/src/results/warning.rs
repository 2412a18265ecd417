//! Reasons to doubt a result, and what to do about each.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason for doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Warning {
    /// The rounds of one measurement differ a lot.
    NoisyRounds {
        /// Workload or command.
        subject: String,
        /// Allocator.
        allocator: String,
        /// Half the distance between the quartiles over the median, in percent.
        spread_percent: u32,
    },
    /// There are too few rounds to see most differences.
    FewRounds {
        /// Rounds that were requested.
        rounds: usize,
        /// The number that is enough.
        enough: usize,
    },
    /// Other programs were running.
    Loaded {
        /// Load average when the measurement began, in hundredths.
        load_hundredths: u32,
        /// Processors.
        processors: usize,
    },
    /// The processor changes its frequency.
    FrequencyScaling {
        /// The governor.
        governor: String,
    },
    /// Transparent huge pages are on for every process.
    HugePagesAlways,
    /// The environment of the lab sets options of Freestone.
    OptionsSet {
        /// The variables, as NAME=VALUE.
        options: Vec<String>,
    },
    /// The files of one report were measured on different machines.
    DifferentMachines,
    /// One allocator appears in several versions.
    DifferentVersions {
        /// Allocator.
        allocator: String,
        /// Its versions.
        versions: Vec<String>,
    },
    /// A run failed and has no figures.
    Failed {
        /// Workload or command.
        subject: String,
        /// Allocator.
        allocator: String,
        /// What happened.
        what: String,
    },
    /// Two counts of the same instructions differ.
    CountsVary {
        /// Workload.
        subject: String,
        /// Allocator.
        allocator: String,
        /// Both counts.
        counts: [u64; 2],
    },
    /// The same work had different results under different allocators.
    ResultsDiffer {
        /// Workload or command.
        subject: String,
        /// Allocator whose result differs from the baseline's.
        allocator: String,
    },
    /// The allocator did not answer `malloc` in the measured process.
    NotInProcess {
        /// Command.
        subject: String,
        /// Allocator.
        allocator: String,
        /// Why, as far as the lab can tell.
        why: String,
    },
    /// Something that the lab needs for part of the measurement is missing; the rest was measured.
    Missing {
        /// What is missing, and how to get it.
        what: String,
    },
    /// Ctrl-C ended the measurement early.
    Interrupted,
}

/// The warnings as sentences. Three or more noisy measurements become one sentence: on a busy machine almost every measurement is noisy.
pub(crate) fn sentences(warnings: &[Warning]) -> Vec<String> {
    let mut noisy: Vec<&Warning> = Vec::new();
    let mut sentences = Vec::new();
    for warning in warnings {
        if matches!(warning, Warning::NoisyRounds { .. }) {
            noisy.push(warning)
        } else {
            sentences.push(warning.to_string())
        }
    }
    noisy.sort_by_key(|warning| match warning {
        Warning::NoisyRounds { spread_percent, .. } => *spread_percent,
        _ => 0,
    });
    match noisy.as_slice() {
        [] => {}
        [.., worst] if noisy.len() > 2 => sentences.push(format!(
            "{} measurements have rounds that differ by more than 10 %, so small differences cannot be seen in them. The worst: {worst}",
            noisy.len()
        )),
        few => sentences.extend(few.iter().map(|warning| warning.to_string())),
    }
    sentences
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoisyRounds { subject, allocator, spread_percent } => write!(
                f,
                "{subject} under {allocator}: rounds differ by ±{spread_percent} %. Close other programs, or raise --rounds"
            ),
            Self::FewRounds { rounds, enough } => write!(
                f,
                "in {rounds} round{} only the steadiest differences can be told from chance, so 'no difference seen' means little; for a \
                 comparison omit --rounds, or give {enough} or more",
                if *rounds == 1 { "" } else { "s" }
            ),
            Self::Loaded { load_hundredths, processors } => write!(
                f,
                "the machine was busy before the measurement began (load {:.2} on {processors} processors). Times are comparable \
                 within a round only; wait until it is idle for better ones",
                f64::from(*load_hundredths) / 100.0
            ),
            Self::FrequencyScaling { governor } => write!(
                f,
                "the processor's frequency is governed by '{governor}'. For steadier times: cpupower frequency-set -g performance"
            ),
            Self::HugePagesAlways => f.write_str(
                "transparent huge pages are 'always', so resident sizes change in steps of 2 MiB. For exact figures: \
                 echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            ),
            Self::OptionsSet { options } => write!(
                f,
                "the environment sets {}, which counts in all runs under Freestone that have no such option of their own",
                options.join(" ")
            ),
            Self::DifferentMachines => {
                f.write_str("these files come from different machines: compare ratios between them, never times")
            }
            Self::DifferentVersions { allocator, versions } => {
                write!(f, "{allocator} appears in different versions: {}. The trend mixes them", versions.join("; "))
            }
            Self::Failed { subject, allocator, what } => write!(f, "{subject} under {allocator}: {what}"),
            Self::CountsVary { subject, allocator, counts: [one, other] } => write!(
                f,
                "{subject} under {allocator}: two counts differ: {one} and {other} instructions. Some of its work depends on the processor's \
                 time-stamp counter or on chance; compare its counts with that in mind"
            ),
            Self::ResultsDiffer { subject, allocator } => write!(
                f,
                "{subject}: the result under {allocator} differs from the baseline's. If the command's output does not vary by itself, \
                 the allocator or the program has a bug"
            ),
            Self::NotInProcess { subject, allocator, why } => {
                write!(f, "{subject}: {allocator} was not in the process ({why}); its figures are left out")
            }
            Self::Missing { what } => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted: the figures rest on the rounds that were finished"),
        }
    }
}

#[cfg(test)]
mod tests;
