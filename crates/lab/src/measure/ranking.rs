//! The ranking over everything that was measured: which allocator needs least, and where Freestone is behind another. This is what a reader
//! with one minute should learn.

use crate::measure::statistics::Verdict;
use crate::measure::summary::{Figure, Summary};
use crate::workload::catalogue;
use crate::workload::definition::PrimaryFigure;

/// The allocator whose defeats are listed: this is Freestone's lab, so it must say where Freestone is not the best choice.
const OURS: &str = "freestone";

/// Allocators whose mean is within this factor of the best share its place: chance moves a mean by as much.
const CLOSE: f64 = 1.05;

/// One figure of the ranking, and the words for it.
pub(crate) struct Aspect {
    /// The figure.
    pub(crate) figure: Figure,
    /// Its name, as at the beginning of a sentence.
    pub(crate) name: &'static str,
    /// The word for needing less of it.
    pub(crate) less: &'static str,
    /// The word for needing more of it.
    pub(crate) more: &'static str,
}

/// The figures that allocators are ranked by.
pub(crate) const ASPECTS: [Aspect; 2] = [
    Aspect { figure: Figure::Time, name: "Time", less: "faster", more: "slower" },
    Aspect { figure: Figure::PeakRss, name: "Peak memory", less: "leaner", more: "larger" },
];

/// The ratios of one allocator to the baseline in one figure, over all subjects.
pub(crate) struct Tally {
    /// Geometric mean of the median ratios. A ratio without a visible difference counts as 1, so that noise does not add up to a verdict.
    pub(crate) mean: f64,
    /// Number of subjects that need less than under the baseline.
    pub(crate) less: usize,
    /// Number of subjects that need more.
    pub(crate) more: usize,
    /// Number of subjects without a visible difference.
    pub(crate) same: usize,
}

impl Tally {
    /// The tally of `allocator`; `None` if it was not compared in this figure.
    pub(crate) fn of(summary: &Summary, allocator: &str, figure: Figure) -> Option<Self> {
        let ratios: Vec<_> = subjects(summary, figure)
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

    /// `faster in 3, slower in 1, no difference seen in 2`, without the numbers that are 0.
    pub(crate) fn counted(&self, aspect: &Aspect) -> String {
        let parts = [(aspect.less, self.less), (aspect.more, self.more), ("no difference seen", self.same)];
        let counts: Vec<String> = parts
            .iter()
            .filter(|(_, number)| *number > 0)
            .map(|(what, number)| format!("{what} in {number}"))
            .collect();
        counts.join(", ")
    }
}

/// The subjects that count in `figure`: workloads that are made to show memory do not count for time.
pub(crate) fn subjects(summary: &Summary, figure: Figure) -> impl Iterator<Item = &str> {
    let shows_memory =
        |subject: &str| catalogue::of_subject(subject).is_some_and(|workload| workload.shows == PrimaryFigure::Memory);
    let all = summary.subjects().iter().map(String::as_str);
    all.filter(move |subject| figure != Figure::Time || !shows_memory(subject))
}

/// The allocators that were compared with the baseline. An experiment also has contenders that are only compared with each other.
pub(crate) fn compared(summary: &Summary) -> impl Iterator<Item = &String> {
    let has_tally = |name: &&String| ASPECTS.iter().any(|aspect| Tally::of(summary, name, aspect.figure).is_some());
    summary.allocators().iter().skip(1).filter(has_tally)
}

/// A sentence about the allocators that need least, the baseline included; `say` formats their names. `None` if nothing was compared.
pub(crate) fn least(summary: &Summary, aspect: &Aspect, say: impl Fn(&str) -> String) -> Option<String> {
    let mut means: Vec<(&str, Tally)> =
        compared(summary).filter_map(|name| Some((name.as_str(), Tally::of(summary, name, aspect.figure)?))).collect();
    let name = aspect.name.to_lowercase();
    if means.iter().all(|(_, tally)| tally.less + tally.more == 0) {
        return (!means.is_empty()).then(|| format!("No difference in {name} was seen."));
    }
    let baseline = summary.allocators().first()?;
    means.insert(0, (baseline, Tally { mean: 1.0, less: 0, more: 0, same: 0 }));
    let best = means.iter().map(|(_, tally)| tally.mean).fold(f64::MAX, f64::min);
    let leaders = means.iter().filter(|(_, tally)| tally.mean <= best * CLOSE);
    let names: Vec<String> = leaders.map(|(name, _)| say(name)).collect();
    Some(format!("Least {name}: {}.", enumerated(&names)))
}

/// A subject for which another allocator needs visibly less than Freestone.
struct Defeat<'a> {
    subject: &'a str,
    winner: &'a str,
    /// Freestone's figure over the winner's.
    factor: f64,
}

/// A sentence about the subjects for which Freestone is behind another, the worst first; `None` if it was not measured beside others.
pub(crate) fn defeats(summary: &Summary, aspect: &Aspect) -> Option<String> {
    const LISTED: usize = 4;
    let others = || summary.allocators().iter().map(String::as_str).filter(|&name| name != OURS);
    let n_subjects =
        subjects(summary, aspect.figure).filter(|subject| summary.cell(subject, OURS, aspect.figure).is_some()).count();
    if n_subjects == 0 || others().next().is_none() {
        return None;
    }
    let beaten = |subject| {
        let seen = others().filter_map(|winner| {
            let ratio = summary.ratio(subject, OURS, winner, aspect.figure)?;
            (ratio.verdict == Verdict::More).then_some(Defeat { subject, winner, factor: ratio.median })
        });
        seen.max_by(|one, other| one.factor.total_cmp(&other.factor))
    };
    let mut defeats: Vec<Defeat<'_>> = subjects(summary, aspect.figure).filter_map(beaten).collect();
    defeats.sort_by(|one, other| other.factor.total_cmp(&one.factor));
    let name = aspect.name.to_lowercase();
    if defeats.is_empty() {
        return Some(format!("In {name}, no allocator was seen ahead of {OURS}."));
    }
    let listed: Vec<String> = defeats
        .iter()
        .take(LISTED)
        .map(|defeat| format!("{} ({:.2} times {}'s)", defeat.subject, defeat.factor, defeat.winner))
        .collect();
    let rest = defeats.len().saturating_sub(LISTED);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    Some(format!(
        "In {name}, {OURS} is behind the best in {} of {n_subjects}: {}{rest}.",
        defeats.len(),
        listed.join(", ")
    ))
}

/// The reader's first question, answered: how much time and memory Freestone takes, as a multiple of the baseline's. `None` if that was not measured.
pub(crate) fn answer(summary: &Summary) -> Option<String> {
    let label = summary.label(summary.allocators().first()?);
    // `system (glibc 2.36)` is known as glibc.
    let base = label.strip_prefix("system (").and_then(|rest| rest.strip_suffix(')')).unwrap_or(&label);
    let [time, memory] = [Figure::Time, Figure::PeakRss].map(|figure| Tally::of(summary, OURS, figure));
    let seen = |tally: Option<Tally>| tally.filter(|tally| tally.less + tally.more > 0).map(|tally| tally.mean);
    let (was_measured, time, memory) = (time.is_some() || memory.is_some(), seen(time), seen(memory));
    if !was_measured {
        return None;
    }
    Some(match (time, memory) {
        (Some(time), Some(memory)) => {
            format!("Freestone takes {time:.2} × the time and {memory:.2} × the peak memory of {base}")
        }
        (Some(time), None) => format!("Freestone takes {time:.2} × the time of {base}"),
        (None, Some(memory)) => {
            format!("Freestone takes {memory:.2} × the peak memory of {base}; no difference in time was seen")
        }
        (None, None) => format!("No difference was seen between Freestone and {base}"),
    })
}

/// The names as `a, b and c`.
pub(crate) fn enumerated(names: &[String]) -> String {
    match names {
        [] => "nothing".into(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests;
