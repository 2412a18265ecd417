//! Curves: latency by percentile, and resident memory over time.

use crate::measure::summary::Summary;
use crate::show::html_page::skeleton::{self, escape, legend, section};
use crate::show::plot::{self, Series, Theme};
use crate::show::quantity;
use crate::workload::catalogue;
use anyhow::Result;
use std::fmt::Write;

/// Most points of a curve: a screen cannot show more.
const MOST_POINTS: usize = 400;

/// The latency curves of every subject that has some.
///
/// # Errors
/// A plot cannot be drawn.
pub(super) fn latency_section(summary: &Summary) -> Result<String> {
    let mut content = String::new();
    for subject in summary.subjects() {
        let found = summary.latencies(subject);
        let Some((_, first)) = found.first() else { continue };
        let labels: Vec<String> =
            first.percentiles.iter().map(|&(percentile, _)| quantity::percentile(percentile)).collect();
        let series: Vec<Series> = found
            .iter()
            .map(|(allocator, latency)| {
                let nines = latency.percentiles.iter().enumerate();
                let points = nines.map(|(index, &(_, ns))| (index as f64, (ns.max(1) as f64).log10())).collect();
                ((*allocator).clone(), points)
            })
            .collect();
        let title = format!("{subject}: time of one operation");
        let svg = plot::percentiles(&title, &labels, &series, Theme::Page)?;
        // Writing to a string does not fail.
        let _ = write!(content, "<figure>{svg}{}</figure>", legend(summary, found.iter().map(|&(name, _)| name)));
        let mut header = vec![escape(subject)];
        header.extend(labels.iter().map(|label| escape(label)));
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|(allocator, latency)| {
                let times = latency.percentiles.iter().map(|&(_, ns)| quantity::time(ns as f64));
                std::iter::once(escape(&summary.label(allocator))).chain(times).collect()
            })
            .collect();
        content.push_str(&skeleton::table(&header, &rows));
        let _ =
            write!(content, "<p class=\"note\">Every value includes {} ns for reading the clock.</p>", first.clock_ns);
    }
    Ok(section("Latency", "Percentiles up to the slowest operation. The time axis is logarithmic.", &content))
}

/// The resident size over time of every subject that samples it.
///
/// # Errors
/// A plot cannot be drawn.
pub(super) fn memory_section(summary: &Summary) -> Result<String> {
    let mut content = String::new();
    for subject in summary.subjects() {
        let samples =
            |allocator| summary.records(subject, allocator).first().map(|record| record.rss_series.as_slice());
        let is_curve = |samples: &[(u64, u64)]| samples.len() >= 8 && samples.last().is_some_and(|last| last.0 >= 500);
        // All allocators are drawn, or none: a fast one must not be missing because it was done sooner.
        if !summary.allocators().iter().filter_map(|name| samples(name)).any(is_curve) {
            continue;
        }
        let series: Vec<Series> = summary
            .allocators()
            .iter()
            .filter_map(|allocator| Some((allocator.clone(), thinned(samples(allocator)?))))
            .collect();
        let svg = plot::lines(&format!("{subject}: resident memory"), "seconds", "MiB", &series, Theme::Page)?;
        let models = catalogue::of_subject(subject).map_or("", |workload| workload.models);
        let legend = legend(summary, series.iter().map(|(name, _)| name));
        let _ = write!(content, "<figure>{svg}{legend}</figure><p class=\"note\">{}</p>", escape(models));
    }
    Ok(section(
        "Memory over time",
        "Does the resident size fall once the load stops? One run of each allocator.",
        &content,
    ))
}

fn thinned(samples: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let step = samples.len().div_ceil(MOST_POINTS).max(1);
    samples.iter().step_by(step).map(|&(ms, bytes)| (ms as f64 / 1e3, bytes as f64 / f64::from(1 << 20))).collect()
}
