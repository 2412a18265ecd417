//! Reasons for doubt: in the machine, in the environment, in the figures, and in the comparison of several files.

use crate::measure::statistics;
use crate::measure::summary::{Figure, Summary};
use crate::results::machine::Machine;
use crate::results::results_file::Results;
use crate::results::warning::Warning;
use std::collections::BTreeSet;

/// Spread of the rounds, relative to their median, above which there is a warning.
const NOISY: f64 = 0.10;

/// Load average per processor above which there is a warning.
const LOADED: f64 = 0.5;

/// Doubts because of the machine.
pub(crate) fn of_machine(machine: &Machine) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if machine.load > machine.processors as f64 * LOADED {
        let load_hundredths = (machine.load * 100.0) as u32;
        warnings.push(Warning::Loaded { load_hundredths, processors: machine.processors });
    }
    if let Some(governor) = machine.governor.as_ref().filter(|&governor| governor != "performance") {
        warnings.push(Warning::FrequencyScaling { governor: governor.clone() });
    }
    if machine.transparent_huge_pages == "always" {
        warnings.push(Warning::HugePagesAlways);
    }
    warnings
}

/// Doubts because of options of Freestone that the environment sets.
pub(crate) fn of_environment(variables: &[(String, String)]) -> Vec<Warning> {
    let options: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if options.is_empty() { Vec::new() } else { vec![Warning::OptionsSet { options }] }
}

/// Doubts because of the figures: noisy rounds, and results that differ from the baseline's.
pub(crate) fn of_figures(summary: &Summary) -> Vec<Warning> {
    let Some(baseline) = summary.allocators().first() else { return Vec::new() };
    let mut warnings = Vec::new();
    for subject in summary.subjects() {
        for allocator in summary.allocators() {
            let times = summary.cell(subject, allocator, Figure::Time).map_or_else(Vec::new, |cell| cell.rounds);
            let spread = statistics::spread(&times);
            if spread > NOISY {
                warnings.push(Warning::NoisyRounds {
                    subject: subject.clone(),
                    allocator: allocator.clone(),
                    spread_percent: (spread * 100.0).round() as u32,
                });
            }
            let checksums = summary.checksum(subject, allocator).zip(summary.checksum(subject, baseline));
            if checksums.is_some_and(|(ours, base)| ours != base) {
                warnings.push(Warning::ResultsDiffer { subject: subject.clone(), allocator: allocator.clone() });
            }
        }
    }
    warnings
}

/// Doubts when several files are compared: different machines, different versions.
pub(crate) fn between_files<'a>(all: impl Iterator<Item = &'a Results> + Clone) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let machine = |results: &Results| format!("{} {}", results.header.machine.cpu, results.header.machine.kernel);
    if all.clone().map(machine).collect::<BTreeSet<_>>().len() > 1 {
        warnings.push(Warning::DifferentMachines);
    }
    let allocators = all.flat_map(|results| &results.header.allocators);
    let names: BTreeSet<&str> = allocators.clone().map(|one| one.name.as_str()).collect();
    for name in names {
        let of_name = allocators.clone().filter(|one| one.name == name);
        let versions: BTreeSet<String> = of_name.filter_map(|one| one.version.clone()).collect();
        if versions.len() > 1 {
            let versions = versions.into_iter().collect();
            warnings.push(Warning::DifferentVersions { allocator: name.into(), versions });
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
