//! Several files: how time and memory of each allocator changed from file to file, for each subject, relative to the baseline of each file.
//!
//! Only ratios are compared, because times cannot be compared between machines.

use crate::measure::summary::{Figure, Summary};
use crate::results::results_file::Results;
use crate::results::timestamp;
use crate::show::html_page::skeleton::{escape, section, table};
use std::path::PathBuf;

/// The section; empty if there is only one file.
pub(super) fn section_of(all: &[(PathBuf, Results)], baseline: &str) -> String {
    if all.len() < 2 {
        return String::new();
    }
    let summaries: Vec<Summary> = all.iter().map(|(_, results)| Summary::of(&results.runs, baseline)).collect();
    let mut header = vec![String::new()];
    header.extend(all.iter().map(|(file, results)| {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        format!("<span title=\"{}\">{}</span>", escape(&name), timestamp::utc(results.header.started_unix))
    }));
    let mut content = String::new();
    for (figure, title) in [(Figure::Time, "Time"), (Figure::PeakRss, "Peak memory")] {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (subject, allocator) in pairs(&summaries) {
            let ratios: Vec<Option<f64>> = summaries
                .iter()
                .map(|summary| Some(summary.cell(&subject, &allocator, figure)?.ratio?.median))
                .collect();
            if ratios.iter().flatten().count() >= 2 {
                let shown = ratios.iter().map(|ratio| ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")));
                let name = format!("{}, {}", escape(&subject), escape(&allocator));
                rows.push(std::iter::once(name).chain(shown).collect());
            }
        }
        if !rows.is_empty() {
            content.push_str(&format!("<h3>{title}</h3>{}", table(&header, &rows)));
        }
    }
    if content.is_empty() {
        content = "<p>The files have no comparison in common.</p>".into();
    }
    section("Trend", &format!("Ratios to {baseline} within each file, the oldest file first."), &content)
}

/// Every pair of subject and allocator, in the order of the latest file that has it.
fn pairs(summaries: &[Summary]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for summary in summaries.iter().rev() {
        for subject in summary.subjects() {
            for allocator in summary.allocators() {
                let pair = (subject.clone(), allocator.clone());
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    pairs
}
