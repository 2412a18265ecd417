//! What a reader must know before believing a result, and what to do about it.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason for doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Warning {
    /// The rounds of one measurement differ much among themselves.
    NoisyRounds {
        /// Workload or command.
        subject: String,
        /// Allocator.
        allocator: String,
        /// Half the distance between the quartiles over the median, in percent.
        spread_percent: u32,
    },
    /// Too few rounds to see most differences.
    FewRounds {
        /// Rounds that were asked for.
        rounds: usize,
        /// Rounds that are enough.
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
    /// Files of one report were measured on different machines.
    DifferentMachines,
    /// One allocator appears in several versions.
    DifferentVersions {
        /// Allocator.
        allocator: String,
        /// Its versions.
        versions: Vec<String>,
    },
    /// A run did not end well and has no figures.
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
    /// Allocators disagree on the result of the same work.
    ResultsDiffer {
        /// Workload or command.
        subject: String,
        /// Allocator that differs from the baseline.
        allocator: String,
    },
    /// The allocator was not in the process it was to be measured in.
    NotInProcess {
        /// Command.
        subject: String,
        /// Allocator.
        allocator: String,
        /// Why, as far as it can be told.
        why: String,
    },
    /// Something the lab would have used is not there; the rest went on without it.
    Missing {
        /// What, and what to do to have it.
        what: String,
    },
    /// Ctrl-C ended the measurement early.
    Interrupted,
}

impl Warning {
    /// What the machine itself gives reason to doubt.
    pub(crate) fn of_machine(machine: &Machine) -> Vec<Self> {
        let mut warnings = Vec::new();
        if machine.load > machine.processors as f64 * 0.5 {
            let load_hundredths = (machine.load * 100.0) as u32;
            warnings.push(Self::Loaded { load_hundredths, processors: machine.processors });
        }
        if let Some(governor) = machine.governor.as_ref().filter(|&governor| governor != "performance") {
            warnings.push(Self::FrequencyScaling { governor: governor.clone() });
        }
        if machine.transparent_huge_pages == "always" {
            warnings.push(Self::HugePagesAlways);
        }
        warnings
    }
}

/// The warnings as sentences. Noisy rounds are told in one: on a busy machine there would be one for every measurement.
pub(crate) fn told(warnings: &[Warning]) -> Vec<String> {
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
                "in {rounds} rounds only the steadiest differences can be told from chance, so that none seen means little; for a comparison \
                 leave --rounds out, or give {enough} or more"
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
                "transparent huge pages are 'always': resident sizes come in steps of 2 MiB. For figures by the page: \
                 echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
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
                "{subject} under {allocator}: counted twice, {one} and {other} instructions. It does something by the processor's \
                 time-stamp counter or by chance; compare its counts with that in mind"
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
