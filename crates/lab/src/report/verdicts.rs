//! The first screen: what a reader who has one minute should take away.

use super::page::{self, escape};
use crate::plot;
use crate::results::Header;
use crate::statistics::Verdict;
use crate::summary::{Figure, Summary};

/// Ratios of one allocator over all subjects, in one figure.
struct Tally {
    /// Geometric mean of the median ratios, differences seen or not.
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
        Some(Self {
            mean: (ratios.iter().map(|ratio| ratio.median.ln()).sum::<f64>() / ratios.len() as f64).exp(),
            less: count(Verdict::Less),
            more: count(Verdict::More),
            same: count(Verdict::NoDifferenceSeen),
        })
    }
}

/// One box for every allocator but the baseline.
fn heads_of(summary: &Summary) -> String {
    let heads: String = summary.allocators().iter().skip(1).filter_map(|allocator| head(summary, allocator)).collect();
    if heads.is_empty() { String::new() } else { format!("<div class=\"heads\">{heads}</div>") }
}

/// The summary in words and one box for every allocator.
pub(super) fn section(summary: &Summary, header: &Header) -> String {
    let Some(baseline) = summary.allocators().first() else {
        return page::section("Summary", "", "<p>These files hold no finished run.</p>");
    };
    let rounds = summary
        .subjects()
        .iter()
        .filter_map(|subject| Some(summary.cell(subject, baseline, Figure::Time)?.rounds.len()))
        .max()
        .unwrap_or(0);
    let note = format!(
        "{} compared with {baseline} on {} in {rounds} interleaved rounds. Each box gives the geometric mean of the ratios over all of them; \
         below 1 is better. A difference is only counted where chance does not explain it.",
        listed(&summary.allocators()[1..]),
        subjects(summary.subjects().len()),
    );
    let single = if header.allocators.len() < 2 {
        "<p>Only one allocator was measured, so there is nothing to compare it with.</p>"
    } else {
        ""
    };
    page::section("Summary", &note, &format!("{}{single}", heads_of(summary)))
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

fn head(summary: &Summary, allocator: &str) -> Option<String> {
    let time = Tally::of(summary, allocator, Figure::Time)?;
    let memory = Tally::of(summary, allocator, Figure::PeakRss);
    let line = |tally: &Tally, what: &str, less: &str, more: &str| {
        format!(
            "<strong>{:.2}×</strong> {what}<span>{less} in {}, {more} in {}, no difference seen in {}</span>",
            tally.mean, tally.less, tally.more, tally.same
        )
    };
    let memory = memory.map_or_else(String::new, |tally| line(&tally, "the peak memory", "leaner", "larger"));
    Some(format!(
        "<div class=\"head\" style=\"--tint:{}\"><b>{}</b>{}{memory}</div>",
        plot::colour(allocator),
        escape(allocator),
        line(&time, "the time", "faster", "slower"),
    ))
}
