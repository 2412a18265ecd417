//! The tables of `freestone bench`: time and memory, one line a workload, one column an allocator.

use crate::measure::Measurement;
use crate::statistics::{Ratio, Verdict};
use crate::summary::{Cell, Figure, LOOP_ONLY, Summary};
use crate::workload;
use crate::{quantity, table};
use anyhow::Result;
use serde_json::json;

/// Prints all tables.
pub(super) fn print(summary: &Summary) {
    println!("Time per operation, as a multiple of {}'s (below 1: faster)", base(summary));
    print_figure(summary, Figure::Time, quantity::time);
    println!("\nPeak memory, as a multiple of {}'s (below 1: leaner)", base(summary));
    print_figure(summary, Figure::PeakRss, quantity::bytes);
    print_own_figures(summary);
    print_latencies(summary);
    if summary.subjects().iter().any(|subject| summary.cell(subject, base(summary), Figure::Instructions).is_some()) {
        println!("\nInstructions in an operation, loop included");
        print_instructions(summary);
    }
}

fn base(summary: &Summary) -> &str {
    summary.allocators().first().map_or("", String::as_str)
}

fn print_figure(summary: &Summary, figure: Figure, show: fn(f64) -> String) {
    let loops = figure == Figure::Time;
    let mut header = vec![String::new(), base(summary).to_owned()];
    if loops {
        header.push("loop alone".into());
    }
    header.extend(summary.allocators().iter().skip(1).cloned());
    let mut table = table::new(&header);
    for subject in summary.subjects() {
        let mut row = vec![subject.clone()];
        row.push(summary.cell(subject, base(summary), figure).map_or_else(failed, |cell| show(cell.median)));
        if loops {
            let cell = summary.cell(subject, LOOP_ONLY, figure);
            row.push(cell.map_or_else(String::new, |cell| show(cell.median)));
        }
        for allocator in summary.allocators().iter().skip(1) {
            row.push(summary.cell(subject, allocator, figure).map_or_else(failed, |cell| multiple(&cell, show)));
        }
        table.add_row(row);
    }
    println!("{table}");
}

fn failed() -> String {
    "failed".into()
}

/// A ratio with its interval, or that there is no difference to be seen.
fn multiple(cell: &Cell, show: fn(f64) -> String) -> String {
    match &cell.ratio {
        Some(ratio) => verdict(ratio),
        None => show(cell.median),
    }
}

/// `0.71 (0.69 to 0.73)`, or "no difference seen".
pub(crate) fn verdict(ratio: &Ratio) -> String {
    match ratio.verdict {
        Verdict::NoDifferenceSeen => "no difference seen".into(),
        Verdict::Less | Verdict::More => format!("{:.2}  {:.2}–{:.2}", ratio.median, ratio.low, ratio.high),
    }
}

fn print_own_figures(summary: &Summary) {
    let mut rows = Vec::new();
    for subject in summary.subjects() {
        let first = summary.allocators().iter().find_map(|name| summary.records(subject, name).first().copied());
        for name in first.into_iter().flat_map(|record| record.figures.keys()) {
            let mut row = vec![subject.clone(), name.clone()];
            row.extend(
                summary.allocators().iter().map(|allocator| {
                    summary.own_figure(subject, allocator, name).map_or_else(failed, quantity::digits)
                }),
            );
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return;
    }
    println!("\nWhat the workloads themselves report");
    let mut header = vec![String::new(), String::new()];
    header.extend(summary.allocators().iter().cloned());
    let mut table = table::new(&header);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    println!("{table}");
}

fn print_latencies(summary: &Summary) {
    for subject in summary.subjects() {
        let found: Vec<_> = summary
            .allocators()
            .iter()
            .filter_map(|allocator| Some((allocator, summary.latency(subject, allocator)?)))
            .collect();
        let Some((_, first)) = found.first() else { continue };
        println!("\nLatency of one operation in {subject}; {} ns of it is the clock", first.clock_ns);
        let mut header = vec![String::new()];
        header.extend(first.percentiles.iter().map(|(percentile, _)| percentile_name(*percentile)));
        let mut table = table::new(&header);
        for (allocator, latency) in &found {
            let mut row = vec![(*allocator).clone()];
            row.extend(latency.percentiles.iter().map(|&(_, nanoseconds)| quantity::time(nanoseconds as f64)));
            table.add_row(row);
        }
        println!("{table}");
    }
}

fn percentile_name(percentile: f64) -> String {
    if percentile >= 100.0 { "slowest".into() } else { format!("p{percentile}") }
}

fn print_instructions(summary: &Summary) {
    let mut header = vec![String::new()];
    header.extend(summary.allocators().iter().cloned());
    let mut table = table::new(&header);
    for subject in summary.subjects() {
        let cells: Vec<Option<Cell>> =
            summary.allocators().iter().map(|name| summary.cell(subject, name, Figure::Instructions)).collect();
        if cells.iter().any(Option::is_some) {
            let mut row = vec![subject.clone()];
            row.extend(cells.into_iter().map(|cell| cell.map_or_else(failed, |cell| quantity::digits(cell.median))));
            table.add_row(row);
        }
    }
    println!("{table}");
}

/// Prints the summary as JSON.
pub(crate) fn print_json(summary: &Summary, measurement: &Measurement) -> Result<()> {
    let figures = [Figure::Time, Figure::Cpu, Figure::PeakRss, Figure::Faults, Figure::Instructions];
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
        "header": measurement.header, "baseline": base(summary), "cells": cells, "warnings": measurement.warnings,
        "results": measurement.path(),
    });
    println!("{}", serde_json::to_string_pretty(&whole)?);
    Ok(())
}

/// Prints the workloads and their parameters.
pub(super) fn print_list() {
    let mut table = table::new(&["workload".into(), "models".into(), "parameters".into(), "does not show".into()]);
    for workload in workload::ALL {
        let params: Vec<String> =
            workload.params.iter().map(|param| format!("{}={}: {}", param.name, param.values[1], param.help)).collect();
        table.add_row(vec![workload.name.into(), workload.models.into(), params.join("\n"), workload.hides.into()]);
    }
    println!("{table}");
}
