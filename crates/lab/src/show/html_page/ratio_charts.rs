//! One chart for all subjects in each figure: time on the left, peak memory on the right, with the same rows and each with one axis.
//!
//! The axis is logarithmic and centred on 1, so that one half is as far to the left as 2 is to the right. A dot is an allocator's median, the line
//! its 95 % interval; an empty dot means that no difference was seen. Places across are shares of the width and places down are pixels, so that
//! letters have their size on every screen.

use crate::measure::statistics::{Ratio, Verdict};
use crate::measure::summary::{Figure, Summary};
use crate::show::html_page::skeleton::{self, Origin, escape};
use crate::show::{plot, quantity};
use std::fmt::Write;

/// Height of a row: its name, and the lane of its dots below.
const ROW: f64 = 40.0;
/// Height of the axis.
const FOOT: f64 = 26.0;
/// Shares of the width to the left and right of the lanes: half a dot has to fit there.
const MARGIN: f64 = 3.0;
/// Letters of a name that fit beside the figure at the narrowest.
const LETTERS: usize = 30;

/// The section; empty if there is only one allocator.
pub(super) fn section(summary: &Summary, origin: &Origin) -> String {
    let Some((baseline, others)) = summary.allocators().split_first().filter(|(_, others)| !others.is_empty()) else {
        return String::new();
    };
    // The one whose ratio is written out: Freestone, or the first that is compared.
    let ours = others.iter().find(|name| *name == "freestone").unwrap_or(&others[0]);
    let note = format!(
        "Ratios to {baseline} on a logarithmic axis centred on 1: left of the middle is better. Dot: median; line: 95 % interval; empty \
         dot: no difference seen. The number is {ours}'s; in parentheses what 1 stands for."
    );
    let charts: String = [(Figure::Time, "Time"), (Figure::PeakRss, "Peak memory")]
        .into_iter()
        .filter_map(|(figure, title)| chart(summary, figure, title, ours, origin))
        .collect();
    let content = if charts.is_empty() {
        String::new()
    } else {
        format!("{}<div class=\"charts\">{charts}</div>", skeleton::legend(summary, others))
    };
    skeleton::section("Workload by workload", &note, &content)
}

/// The chart of one figure; `None` if nothing was compared in it.
fn chart(summary: &Summary, figure: Figure, title: &str, ours: &str, origin: &Origin) -> Option<String> {
    let has_ratio = |subject: &&String| {
        summary
            .allocators()
            .iter()
            .any(|name| summary.cell(subject, name, figure).is_some_and(|cell| cell.ratio.is_some()))
    };
    let subjects: Vec<&String> = summary.subjects().iter().filter(has_ratio).collect();
    if subjects.is_empty() {
        return None;
    }
    let scale = scale(summary, figure);
    let bottom = subjects.len() as f64 * ROW + 6.0;
    let mut svg = axis(scale, bottom);
    for (index, subject) in subjects.iter().enumerate() {
        svg.push_str(&row(summary, subject, figure, ours, index as f64 * ROW, scale));
    }
    Some(format!(
        "<figure><h3>{title}</h3><svg style=\"height:{}px\" role=\"img\" aria-label=\"{title} of every workload\">{svg}</svg>{}</figure>",
        bottom + FOOT,
        origin.caption(&format!("{title}, ratios"))
    ))
}

/// The logarithm of the largest ratio of a figure, in either direction, between a factor of 2 and one of 16.
fn scale(summary: &Summary, figure: Figure) -> f64 {
    let ratios = summary.subjects().iter().flat_map(|subject| {
        summary.allocators().iter().filter_map(move |allocator| summary.cell(subject, allocator, figure)?.ratio)
    });
    let farthest = ratios.map(|ratio| ratio.median.ln().abs()).fold(0.0, f64::max);
    farthest.clamp(2_f64.ln(), 16_f64.ln()) * 1.08
}

/// Where a ratio is, in percent of the width.
fn at(ratio: f64, scale: f64) -> f64 {
    50.0 + (ratio.max(1e-9).ln() / scale).clamp(-1.0, 1.0) * (50.0 - MARGIN)
}

/// Lines at round ratios, through all rows.
fn axis(scale: f64, bottom: f64) -> String {
    let mut svg = String::new();
    for (ratio, label) in [(0.125, "⅛"), (0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4"), (8.0, "8")] {
        if f64::ln(ratio).abs() > scale {
            continue;
        }
        let x = at(ratio, scale);
        let line = if (ratio - 1.0).abs() < f64::EPSILON { "var(--soft)" } else { "var(--line)" };
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"{bottom}\" stroke=\"{line}\"/>\
             <text x=\"{x:.2}%\" y=\"{:.1}\" font-size=\"13\" text-anchor=\"middle\" opacity=\".8\">{label}</text>",
            bottom + 18.0
        );
    }
    svg
}

/// A subject: its name, our ratio, and a dot for every allocator, ours last so that it is in front.
fn row(summary: &Summary, subject: &str, figure: Figure, ours: &str, top: f64, scale: f64) -> String {
    let cell = |allocator: &str| summary.cell(subject, allocator, figure);
    let ratio_of = |allocator: &str| cell(allocator).and_then(|cell| cell.ratio);
    let show = if figure == Figure::Time { quantity::time } else { quantity::bytes };
    let base =
        summary.allocators().first().and_then(|base| cell(base)).map_or_else(String::new, |cell| show(cell.median));
    let (number, tone) =
        ratio_of(ours).map_or((String::new(), "same"), |ratio| (format!("{:.2}", ratio.median), tone(&ratio)));
    let mut svg = format!(
        "<text class=\"halo\" x=\"0\" y=\"{0:.1}\" font-size=\"14\">{1}</text>\
         <text class=\"halo {tone}\" x=\"100%\" y=\"{0:.1}\" font-size=\"14\" text-anchor=\"end\">{number}<tspan class=\"same\"> ({base})</tspan></text>",
        top + 16.0,
        escape(&short_name(subject)),
    );
    let others = summary.allocators().iter().filter(|name| *name != ours);
    for allocator in others.map(String::as_str).chain([ours]) {
        let Some(ratio) = ratio_of(allocator) else { continue };
        let (colour, y) = (plot::colour(allocator), top + 28.0);
        let (fill, radius) = (
            if ratio.verdict == Verdict::NoDifferenceSeen { "var(--card)" } else { colour },
            if allocator == ours { 6.0 } else { 4.5 },
        );
        let _ = write!(
            svg,
            "<line x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"3\" opacity=\".4\"/>\
             <circle cx=\"{:.2}%\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"2\">\
             <title>{}, {}: {:.3} ({:.3} to {:.3}), {}</title></circle>",
            at(ratio.low, scale),
            at(ratio.high, scale),
            at(ratio.median, scale),
            escape(subject),
            escape(&summary.label(allocator)),
            ratio.median,
            ratio.low,
            ratio.high,
            quantity::counted(ratio.rounds as u64, "round", "rounds"),
        );
    }
    svg
}

fn tone(ratio: &Ratio) -> &'static str {
    match ratio.verdict {
        Verdict::NoDifferenceSeen => "same",
        Verdict::Less => "less",
        Verdict::More => "more",
    }
}

/// The name of a row: options without their common prefix, and cut where it would meet the figure.
fn short_name(name: &str) -> String {
    let name = name.trim_start_matches("FREESTONE_");
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    format!("{}…", name.chars().take(LETTERS - 1).collect::<String>())
}
