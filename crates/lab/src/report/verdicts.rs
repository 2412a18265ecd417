//! The first screen: what a reader who has one minute should take away.

use super::page::{self, escape};
use crate::plot;
use crate::results::Header;
use crate::statistics::Verdict;
use crate::summary::{Figure, Summary};
use crate::warning::{self, Warning};

/// Ratios of one allocator over all subjects, in one figure.
struct Tally {
    /// Geometric mean of the median ratios; 1 where no difference was seen, so that noise does not add up to a verdict.
    mean: f64,
    less: usize,
    more: usize,
    same: usize,
}

impl Tally {
    fn of(summary: &Summary, allocator: &str, figure: Figure) -> Option<Self> {
        let ratios: Vec<_> = summary
            .subjects()
            .iter()
            .filter_map(|subject| summary.cell(subject, allocator, figure)?.ratio)
            .filter(|ratio| ratio.median > 0.0)
            .collect();
        if ratios.is_empty() {
            return None;
        }
        let count = |verdict| ratios.iter().filter(|ratio| ratio.verdict == verdict).count();
        let seen = ratios.iter().filter(|ratio| ratio.verdict != Verdict::NoDifferenceSeen);
        Some(Self {
            mean: (seen.map(|ratio| ratio.median.ln()).sum::<f64>() / ratios.len() as f64).exp(),
            less: count(Verdict::Less),
            more: count(Verdict::More),
            same: count(Verdict::NoDifferenceSeen),
        })
    }
}

/// One figure of the summary: what it is called, and what less and more of it are called.
struct Column {
    figure: Figure,
    name: &'static str,
    less: &'static str,
    more: &'static str,
}

const COLUMNS: [Column; 2] = [
    Column { figure: Figure::Time, name: "Time", less: "faster", more: "slower" },
    Column { figure: Figure::PeakRss, name: "Peak memory", less: "leaner", more: "larger" },
];

/// The summary in words and one line for every allocator.
pub(super) fn section(summary: &Summary, header: &Header, warnings: &[Warning]) -> String {
    let Some(baseline) = summary.allocators().first() else {
        return page::section("Summary", "", "<p>These files hold no finished run.</p>");
    };
    if header.allocators.len() < 2 {
        let alone = "<p>Only one allocator was measured, so there is nothing to compare it with.</p>";
        return page::section("Summary", "", alone);
    }
    let rounds = summary
        .subjects()
        .iter()
        .filter_map(|subject| Some(summary.cell(subject, baseline, Figure::Time)?.rounds.len()))
        .max()
        .unwrap_or(0);
    let note = format!(
        "{} compared with {baseline} on {} in up to {rounds} interleaved rounds. The large figure is the geometric mean of the ratios; below 1 \
         is better. Where chance explains a difference, it counts as none.",
        listed(&summary.allocators()[1..]),
        subjects(summary.subjects().len()),
    );
    page::section("Summary", &note, &format!("{}{}{}", leaders(summary), lines_of(summary), pointer(warnings)))
}

/// Means this close to the best share its place: which figures chance left standing moves them by as much.
const CLOSE: f64 = 1.05;

/// Who needs least, of all allocators, the baseline included.
fn leaders(summary: &Summary) -> String {
    let said = COLUMNS.map(|column| {
        let mean = |name: &String| Some((escape(name), Tally::of(summary, name, column.figure)?.mean));
        let baseline = summary.allocators().first().map(|name| (escape(name), 1.0));
        let means: Vec<_> = baseline.into_iter().chain(summary.allocators().iter().skip(1).filter_map(mean)).collect();
        let best = means.iter().map(|&(_, mean)| mean).fold(f64::MAX, f64::min);
        let first: Vec<String> = means
            .into_iter()
            .filter(|&(_, mean)| mean <= best * CLOSE)
            .map(|(name, _)| format!("<b>{name}</b>"))
            .collect();
        format!("Least {}: {}.", column.name.to_lowercase(), listed(&first))
    });
    format!("<p class=\"lead\">{}</p>", said.join(" "))
}

fn lines_of(summary: &Summary) -> String {
    let lines: String = summary.allocators().iter().skip(1).map(|allocator| line(summary, allocator)).collect();
    let heads: String = COLUMNS.iter().map(|column| format!("<th colspan=\"2\">{}</th>", column.name)).collect();
    format!(
        "<div class=\"wide\"><table class=\"heads\"><thead><tr><th></th>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )
}

fn line(summary: &Summary, allocator: &str) -> String {
    let cells: String = COLUMNS.iter().map(|column| cell(summary, allocator, column)).collect();
    format!("<tr><th><i style=\"background:{}\"></i>{}</th>{cells}</tr>", plot::colour(allocator), escape(allocator))
}

/// The mean, and how it came about: a bar of the subjects that are better, equal and worse.
fn cell(summary: &Summary, allocator: &str, column: &Column) -> String {
    let Some(tally) = Tally::of(summary, allocator, column.figure) else {
        return "<td colspan=\"2\" class=\"same\">not measured</td>".into();
    };
    let parts: String = [("good", tally.less), ("even", tally.same), ("bad", tally.more)]
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(class, number)| format!("<i class=\"{class}\" style=\"flex:{number}\"></i>"))
        .collect();
    format!(
        "<td><strong>{:.2}×</strong></td><td><div class=\"bar\">{parts}</div><span>{}</span></td>",
        tally.mean,
        counted(&tally, column)
    )
}

/// `faster in 3, slower in 1, no difference seen in 2`, without what never happened.
fn counted(tally: &Tally, column: &Column) -> String {
    let parts = [(column.less, tally.less), (column.more, tally.more), ("no difference seen", tally.same)];
    let said: Vec<String> =
        parts.iter().filter(|(_, number)| *number > 0).map(|(what, number)| format!("{what} in {number}")).collect();
    said.join(", ")
}

/// Where the reasons for doubt are.
fn pointer(warnings: &[Warning]) -> String {
    match warning::told(warnings).len() {
        0 => String::new(),
        1 => "<p class=\"note\">There is <a href=\"#warnings\">one warning</a>.</p>".into(),
        number => format!("<p class=\"note\">There are <a href=\"#warnings\">{number} warnings</a>.</p>"),
    }
}

fn subjects(number: usize) -> String {
    if number == 1 { "one subject".into() } else { format!("{number} subjects") }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "Nothing".into(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}
