//! The JSON that `freestone bench --json` prints.

use crate::measure::summary::{Figure, Summary};
use crate::results::file_header::Header;
use crate::results::outcome::{Outcome, Run};
use crate::results::warning::Warning;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

/// The figures that were measured in another way than by a workload or a command: events that were counted, and Go's times.
fn figures_of(summary: &Summary) -> Vec<Value> {
    let figure = |run: &Run| match &run.outcome {
        Outcome::Figure { name, value } => {
            Some(json!({"subject": run.subject, "allocator": run.allocator, "name": name, "value": value}))
        }
        _ => None,
    };
    summary.kept_figures().iter().filter_map(figure).collect()
}

/// Prints the comparisons with the header and the warnings of the measurement, and the path of its results file.
///
/// # Errors
/// A value cannot be written as JSON.
pub(crate) fn print(summary: &Summary, header: &Header, warnings: &[Warning], results: &Path) -> Result<()> {
    let figures = [
        Figure::Time,
        Figure::Cpu,
        Figure::PeakRss,
        Figure::Settled,
        Figure::Faults,
        Figure::Instructions,
        Figure::DataReferences,
        Figure::FirstLevelMisses,
        Figure::LastLevelMisses,
        Figure::Cycles,
        Figure::Retired,
        Figure::CacheMisses,
    ];
    let mut cells = Vec::new();
    for subject in summary.subjects() {
        for allocator in summary.allocators() {
            for figure in figures {
                if let Some(cell) = summary.cell(subject, allocator, figure) {
                    cells.push(json!({"subject": subject, "allocator": allocator, "figure": figure, "cell": cell}));
                }
            }
        }
    }
    let whole = json!({
        "header": header, "baseline": summary.allocators().first().map_or("", String::as_str), "cells": cells, "figures": figures_of(summary),
        "warnings": warnings, "results": results,
    });
    println!("{}", serde_json::to_string_pretty(&whole)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_events_are_in_the_json() {
        let outcome = Outcome::Figure { name: "per 1000 operations".into(), value: 41.5 };
        let subject = "larson, 8 threads: futex calls".to_owned();
        let run = Run { subject, allocator: "system".into(), round: 0, outcome };
        let expected = json!({
            "subject": "larson, 8 threads: futex calls", "allocator": "system", "name": "per 1000 operations", "value": 41.5,
        });
        assert_eq!(figures_of(&Summary::of(&[run], "system")), [expected]);
    }
}
