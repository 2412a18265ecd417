//! The JSON that `freestone bench --json` prints.

use crate::measure::summary::{Figure, Summary};
use crate::results::file_header::Header;
use crate::results::warning::Warning;
use anyhow::Result;
use serde_json::json;
use std::path::Path;

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
        "header": header, "baseline": summary.allocators().first().map_or("", String::as_str), "cells": cells, "warnings": warnings,
        "results": results,
    });
    println!("{}", serde_json::to_string_pretty(&whole)?);
    Ok(())
}
