//! Curves: latency by percentile, and resident memory over time.

use crate::measure::summary::Summary;
use crate::show::html_page::skeleton::{self, Origin, escape, legend, section};
use crate::show::plot::{self, Series, Theme};
use crate::show::quantity;
use crate::workload::catalogue;
use crate::workload::workload_record::Latency;
use anyhow::Result;
use std::fmt::Write;

/// Most points of a curve: a screen cannot show more.
const MOST_POINTS: usize = 400;

/// The latency curves of every subject that has some.
///
/// # Errors
/// A plot cannot be drawn.
pub(super) fn latency_section(summary: &Summary, origin: &Origin) -> Result<String> {
    let mut content = String::new();
    for subject in summary.subjects() {
        let found = summary.latencies(subject);
        let Some((_, first)) = found.first() else { continue };
        let labels: Vec<String> =
            first.percentiles.iter().map(|&(percentile, _)| quantity::percentile(percentile)).collect();
        let net = |latency: &Latency, ns: u64| ns.saturating_sub(latency.clock_ns).max(1);
        let series: Vec<Series> = found
            .iter()
            .map(|(allocator, latency)| {
                let nines = latency.percentiles.iter().enumerate();
                let points = nines.map(|(index, &(_, ns))| (index as f64, (net(latency, ns) as f64).log10())).collect();
                ((*allocator).clone(), points)
            })
            .collect();
        let title = format!("{subject}: time of one operation");
        let pictures = both(|theme| plot::percentiles(&title, &labels, &series, theme))?;
        let legend = legend(summary, found.iter().map(|&(name, _)| name));
        // Writing to a string does not fail.
        let _ = write!(content, "<figure>{pictures}{legend}{}</figure>", origin.caption(&title));
        let mut header = vec![escape(subject)];
        header.extend(labels.iter().map(|label| escape(label)));
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|(allocator, latency)| {
                let times = latency.percentiles.iter().map(|&(_, ns)| {
                    let text = quantity::time(net(latency, ns) as f64);
                    // What the clock costs varies by about as much as this is.
                    let is_clock = ns < 2 * latency.clock_ns;
                    if is_clock { format!("<span class=\"same\">{text}</span>") } else { text }
                });
                std::iter::once(escape(&summary.label(allocator))).chain(times).collect()
            })
            .collect();
        content.push_str(&skeleton::table(&header, &rows));
        let _ = write!(
            content,
            "<p class=\"note\">Reading the clock takes {} ns, which are subtracted. Grey: less than that, so mostly the clock's.</p>",
            first.clock_ns
        );
    }
    Ok(section(
        "Latency",
        "Percentiles up to the slowest operation, without the cost of the clock. The time axis is logarithmic.",
        &content,
    ))
}

/// The resident size over time of every subject that samples it.
///
/// # Errors
/// A plot cannot be drawn.
pub(super) fn memory_section(summary: &Summary, origin: &Origin) -> Result<String> {
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
        let title = format!("{subject}: resident memory");
        let pictures = both(|theme| plot::lines(&title, "seconds", "MiB", &series, theme))?;
        let models = catalogue::of_subject(subject).map_or("", |workload| workload.models);
        let legend = legend(summary, series.iter().map(|(name, _)| name));
        let caption = origin.caption(&title);
        let _ = write!(content, "<figure>{pictures}{legend}{caption}</figure><p class=\"note\">{}</p>", escape(models));
        let ends = summary.allocators().iter().filter_map(|name| Some(end_of(&summary.label(name), samples(name)?)));
        content.push_str(&skeleton::table(
            &["", "at the peak", "at the end", "of the peak"].map(str::to_owned),
            &ends.collect::<Vec<_>>(),
        ));
    }
    Ok(section(
        "Memory over time",
        "Does the resident size fall once the load stops? One run of each allocator.",
        &content,
    ))
}

/// A row of the table below a curve: what is resident at the peak, and what is left of it at the end.
fn end_of(label: &str, samples: &[(u64, u64)]) -> Vec<String> {
    let peak = samples.iter().map(|sample| sample.1).max().unwrap_or(0);
    let end = samples.last().map_or(0, |sample| sample.1);
    let share = format!("{:.0} %", end as f64 * 100.0 / peak.max(1) as f64);
    vec![escape(label), quantity::bytes(peak as f64), quantity::bytes(end as f64), share]
}

/// A picture for wide screens and one for narrow ones, of which the page shows one.
fn both(draw: impl Fn(Theme) -> Result<String>) -> Result<String> {
    let [wide, narrow] = [draw(Theme::Page)?, draw(Theme::NarrowPage)?];
    Ok(format!("<div class=\"on-wide\">{wide}</div><div class=\"on-narrow\">{narrow}</div>"))
}

fn thinned(samples: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let step = samples.len().div_ceil(MOST_POINTS).max(1);
    samples.iter().step_by(step).map(|&(ms, bytes)| (ms as f64 / 1e3, bytes as f64 / f64::from(1 << 20))).collect()
}
