//! Who needs least over everything that was measured, and where Freestone is beaten: what a reader with one minute should take away.

use crate::statistics::Verdict;
use crate::summary::{Figure, Summary};
use crate::workload::{self, Shows};

/// The allocator whose defeats are told: the lab is Freestone's, and must say where it is not the best choice.
const OURS: &str = "freestone";

/// Means this close to the best share its place: which figures chance left standing moves them by as much.
const CLOSE: f64 = 1.05;

/// One figure of the summary: what it is called, and what less and more of it are called.
pub(crate) struct Aspect {
    /// The figure.
    pub(crate) figure: Figure,
    /// Its name at the beginning of a sentence.
    pub(crate) name: &'static str,
    /// What needs less of it.
    pub(crate) less: &'static str,
    /// What needs more of it.
    pub(crate) more: &'static str,
}

/// What allocators are judged by.
pub(crate) const ASPECTS: [Aspect; 2] = [
    Aspect { figure: Figure::Time, name: "Time", less: "faster", more: "slower" },
    Aspect { figure: Figure::PeakRss, name: "Peak memory", less: "leaner", more: "larger" },
];

/// Ratios of one allocator to the baseline over all subjects, in one figure.
pub(crate) struct Tally {
    /// Geometric mean of the median ratios; 1 where no difference was seen, so that noise does not add up to a verdict.
    pub(crate) mean: f64,
    /// Subjects with less than the baseline.
    pub(crate) less: usize,
    /// Subjects with more.
    pub(crate) more: usize,
    /// Subjects without a difference to be seen.
    pub(crate) same: usize,
}

impl Tally {
    /// Of one allocator; `None` where it was not compared.
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

    /// `faster in 3, slower in 1, no difference seen in 2`, without what never happened.
    pub(crate) fn counted(&self, aspect: &Aspect) -> String {
        let parts = [(aspect.less, self.less), (aspect.more, self.more), ("no difference seen", self.same)];
        let said: Vec<String> = parts
            .iter()
            .filter(|(_, number)| *number > 0)
            .map(|(what, number)| format!("{what} in {number}"))
            .collect();
        said.join(", ")
    }
}

/// The subjects an allocator is judged by in `figure`: all, but what is made to show memory says nothing about speed.
pub(crate) fn subjects(summary: &Summary, figure: Figure) -> impl Iterator<Item = &str> {
    let shows_memory = |subject: &str| {
        let workload = subject.split(' ').next().and_then(workload::find);
        workload.is_some_and(|workload| workload.shows == Shows::Memory)
    };
    let all = summary.subjects().iter().map(String::as_str);
    all.filter(move |subject| figure != Figure::Time || !shows_memory(subject))
}

/// The allocators with something to say beside the baseline: an experiment also has contenders that only meet among themselves.
pub(crate) fn compared(summary: &Summary) -> impl Iterator<Item = &String> {
    let has_tally = |name: &&String| ASPECTS.iter().any(|aspect| Tally::of(summary, name, aspect.figure).is_some());
    summary.allocators().iter().skip(1).filter(has_tally)
}

/// Who needs least, of all allocators, the baseline included, in a sentence with the names as `say` puts them; `None` where nothing was compared.
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
    let said: Vec<String> = leaders.map(|(name, _)| say(name)).collect();
    Some(format!("Least {name}: {}.", listed(&said)))
}

/// A subject in which somebody needs visibly less than Freestone.
struct Defeat<'a> {
    subject: &'a str,
    winner: &'a str,
    /// Freestone's figure over the winner's.
    factor: f64,
}

/// Where Freestone is beaten, the worst first, in a sentence; `None` where it was not measured beside others.
pub(crate) fn defeats(summary: &Summary, aspect: &Aspect) -> Option<String> {
    const TOLD: usize = 4;
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
        return Some(format!("In {name}, nobody was seen ahead of {OURS}."));
    }
    let told: Vec<String> = defeats
        .iter()
        .take(TOLD)
        .map(|defeat| format!("{} ({:.2} times {}'s)", defeat.subject, defeat.factor, defeat.winner))
        .collect();
    let rest = defeats.len().saturating_sub(TOLD);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    Some(format!(
        "In {name}, {OURS} is behind the best in {} of {n_subjects}: {}{rest}.",
        defeats.len(),
        told.join(", ")
    ))
}

/// `a, b and c`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => "nothing".into(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests;
