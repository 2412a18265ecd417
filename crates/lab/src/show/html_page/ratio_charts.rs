//! Ratio charts: for every subject a chart of the time on the left and of the peak memory on the right, with a row per allocator.
//!
//! The axis is logarithmic and centred on 1, so that one half is as far to the left as 2 is to the right. All charts in a column have the same
//! scale and can be compared. The dot is the median, the line its 95 % interval; an empty dot means that no difference was seen.

use crate::measure::statistics::{Ratio, Verdict};
use crate::measure::summary::{Figure, Summary};
use crate::show::html_page::skeleton::{self, escape};
use crate::show::{plot, quantity};
use crate::workload::catalogue;
use std::fmt::Write;

const WIDTH: f64 = 520.0;
/// Width of a letter in the column of names.
const LETTER: f64 = 7.4;
/// Least and greatest width of that column.
const NAMES: [f64; 2] = [96.0, 206.0];
const RIGHT: f64 = 62.0;
const ROW: f64 = 22.0;
const FOOT: f64 = 24.0;

/// All charts; empty if there is only one allocator.
fn charts_of(summary: &Summary) -> String {
    if summary.allocators().len() < 2 {
        return String::new();
    }
    let scales = [Figure::Time, Figure::PeakRss].map(|figure| scale(summary, figure));
    let mut charts = String::from("<h3>Time</h3><h3>Peak memory</h3>");
    for subject in summary.subjects() {
        let time = chart(summary, subject, Figure::Time, scales[0]);
        let memory = chart(summary, subject, Figure::PeakRss, scales[1]);
        if time.is_empty() && memory.is_empty() {
            continue;
        }
        let models = catalogue::of_subject(subject).map_or("", |workload| workload.models);
        // Writing to a string does not fail.
        let _ = write!(charts, "<p class=\"name\">{}<small>{}</small></p>", escape(subject), escape(models));
        let _ = write!(
            charts,
            "<div><p class=\"of\">Time</p>{time}</div><div><p class=\"of\">Peak memory</p>{memory}</div>"
        );
    }
    format!("<div class=\"charts\">{charts}</div>")
}

/// The section.
pub(super) fn section(summary: &Summary) -> String {
    let baseline = summary.allocators().first().cloned().unwrap_or_default();
    let note = format!(
        "Ratios to {baseline} on a logarithmic axis centred on 1: left of the middle is better. Dot: median; line: 95 % interval; empty \
         dot: no difference seen."
    );
    skeleton::section("Workload by workload", &note, &charts_of(summary))
}

/// The scale of a figure: the logarithm of its largest ratio, in either direction, between a factor of 2 and one of 16.
fn scale(summary: &Summary, figure: Figure) -> f64 {
    let ratios = summary.subjects().iter().flat_map(|subject| {
        summary.allocators().iter().filter_map(move |allocator| summary.cell(subject, allocator, figure)?.ratio)
    });
    let farthest = ratios.map(|ratio| ratio.median.ln().abs()).fold(0.0, f64::max);
    farthest.clamp(2_f64.ln(), 16_f64.ln()) * 1.08
}

fn chart(summary: &Summary, subject: &str, figure: Figure, scale: f64) -> String {
    let rows: Vec<(&String, Ratio)> = summary
        .allocators()
        .iter()
        .filter_map(|allocator| Some((allocator, summary.cell(subject, allocator, figure)?.ratio?)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let height = rows.len() as f64 * ROW + FOOT;
    let longest = rows.iter().map(|(name, _)| short_name(&summary.label(name)).chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * LETTER + 12.0).clamp(NAMES[0], NAMES[1]);
    let at = |ratio: f64| {
        let half = (WIDTH - left - RIGHT) / 2.0;
        left + half + (ratio.ln() / scale).clamp(-1.0, 1.0) * half
    };
    let mut svg = axis(summary, subject, figure, height, scale, &at);
    for (index, (allocator, ratio)) in rows.iter().enumerate() {
        let y = index as f64 * ROW + ROW / 2.0;
        svg.push_str(&row(&summary.label(allocator), plot::colour(allocator), ratio, y, &at));
    }
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{} of {}\">{svg}</svg>",
        figure.name(),
        escape(subject)
    )
}

/// Lines at round ratios, and the figure that 1 stands for.
fn axis(summary: &Summary, subject: &str, figure: Figure, height: f64, scale: f64, at: &dyn Fn(f64) -> f64) -> String {
    let bottom = height - FOOT;
    let mut svg = String::new();
    for (ratio, label) in [(0.125, "⅛"), (0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4"), (8.0, "8")] {
        if f64::ln(ratio).abs() > scale {
            continue;
        }
        let x = at(ratio);
        let line = if (ratio - 1.0).abs() < f64::EPSILON { "var(--soft)" } else { "var(--line)" };
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom}\" stroke=\"{line}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"12\" text-anchor=\"middle\" opacity=\".75\">{label}</text>",
            bottom + 16.0
        );
    }
    let base = summary.allocators().first().and_then(|base| summary.cell(subject, base, figure));
    let show = if figure == Figure::Time { quantity::time } else { quantity::bytes };
    if let Some(cell) = base {
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{:.1}\" font-size=\"12\" opacity=\".75\">1 = {}</text>",
            bottom + 16.0,
            show(cell.median)
        );
    }
    svg
}

fn row(label: &str, colour: &str, ratio: &Ratio, y: f64, at: &dyn Fn(f64) -> f64) -> String {
    let (fill, tone) = match ratio.verdict {
        Verdict::NoDifferenceSeen => ("var(--card)", "same"),
        Verdict::Less => (colour, "less"),
        Verdict::More => (colour, "more"),
    };
    format!(
        "<text x=\"0\" y=\"{:.1}\" font-size=\"13\">{}</text>\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"3\" opacity=\".45\"/>\
         <circle cx=\"{:.1}\" cy=\"{y}\" r=\"5.5\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"2.2\">\
         <title>{}: {:.3} ({:.3} to {:.3}), {} rounds</title></circle>\
         <text x=\"{WIDTH}\" y=\"{:.1}\" font-size=\"13\" text-anchor=\"end\" class=\"{tone}\">{:.2}</text>",
        y + 4.5,
        escape(&short_name(label)),
        at(ratio.low),
        at(ratio.high),
        at(ratio.median),
        escape(label),
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.rounds,
        y + 4.5,
        ratio.median
    )
}

/// The name beside the chart: options without their common prefix, and cut where the chart begins.
fn short_name(name: &str) -> String {
    let name = name.trim_start_matches("FREESTONE_");
    let most = ((NAMES[1] - 12.0) / LETTER) as usize;
    if name.chars().count() <= most {
        name.to_owned()
    } else {
        format!("{}…", name.chars().take(most - 1).collect::<String>())
    }
}
