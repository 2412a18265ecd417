//! The tables of `freestone bench --count`: counts per operation, and the others' as multiples of the first allocator's.

use crate::measure::summary::{Figure, Summary};
use crate::show::{quantity, table};
use std::collections::BTreeSet;

/// The counts of callgrind, in the order of the tables.
const COUNTS: [(Figure, &str); 4] = [
    (Figure::Instructions, "Instructions per operation, including the loop"),
    (Figure::DataReferences, "Data references per operation"),
    (Figure::FirstLevelMisses, "First-level misses per 1000 operations, in callgrind's model"),
    (Figure::LastLevelMisses, "Last-level misses per 1000 operations, in callgrind's model"),
];

/// Prints all tables.
pub(crate) fn print(summary: &Summary) {
    let Some(base) = summary.allocators().first() else { return };
    let mut header = vec![String::new()];
    header.extend(summary.allocators().iter().map(|name| summary.heading(name)));
    for (figure, title) in COUNTS {
        let rows = count_rows(summary, figure);
        if !rows.is_empty() {
            println!("\n{title}; the others as multiples of {base}'s");
            table::print(&header, &rows, 1);
        }
    }
    print_events(summary, &header);
}

/// A row for each subject with this count: the first allocator's, and the others' as multiples of it; the count itself where that has none.
fn count_rows(summary: &Summary, figure: Figure) -> Vec<Vec<String>> {
    let per = if matches!(figure, Figure::FirstLevelMisses | Figure::LastLevelMisses) { 1000.0 } else { 1.0 };
    let row = |subject: &String| {
        let count = |name: &String| Some(summary.cell(subject, name, figure)?.median * per);
        let (base, others) = summary.allocators().split_first()?;
        let others: Vec<Option<f64>> = others.iter().map(count).collect();
        let first = count(base);
        first.or_else(|| others.iter().flatten().next().copied())?;
        let multiple = |count: f64| match first.filter(|&first| first > 0.0) {
            Some(first) => format!("{:.3}", count / first),
            None => format!("{} (count)", quantity::digits(count)),
        };
        let first = [subject.clone(), first.map_or_else(failed, quantity::digits)];
        Some(first.into_iter().chain(others.into_iter().map(|count| count.map_or_else(failed, multiple))).collect())
    };
    summary.subjects().iter().filter_map(row).collect()
}

fn failed() -> String {
    "failed".into()
}

/// Prints the events of workloads with many threads.
fn print_events(summary: &Summary, header: &[String]) {
    let rows = event_rows(summary);
    if !rows.is_empty() {
        println!("\n{EVENTS}");
        table::print(header, &rows, 1);
    }
}

/// What [`event_rows`] are.
pub(crate) const EVENTS: &str = "Events per 1000 operations, of whole processes; they depend on the schedule";

/// A row for each kind of event of each workload with many threads, with a dash where an allocator has no such lock or never takes it.
pub(crate) fn event_rows(summary: &Summary) -> Vec<Vec<String>> {
    let events = || summary.kept_figures().iter().filter(|run| summary.allocators().contains(&run.allocator));
    let mut seen = BTreeSet::new();
    let subjects: Vec<&str> =
        events().map(|run| run.subject.as_str()).filter(|subject| seen.insert(*subject)).collect();
    let row = |subject: &str| {
        let case = subject.rsplit_once(": ").map_or(subject, |(case, _)| case);
        let is_counted = |name: &String| events().any(|run| run.allocator == *name && run.subject.starts_with(case));
        let absent = |name: &String| if is_counted(name) { "–".into() } else { failed() };
        let cell = |name: &String| summary.kept_figure(subject, name).map_or_else(|| absent(name), quantity::digits);
        std::iter::once(subject.to_owned()).chain(summary.allocators().iter().map(cell)).collect()
    };
    subjects.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::outcome::{CacheModel, Outcome, Run};

    fn run(subject: &str, allocator: &str, outcome: Outcome) -> Run {
        Run { subject: subject.into(), allocator: allocator.into(), round: 0, outcome }
    }

    fn counted(subject: &str, allocator: &str, instructions: u64, first_level_misses: u64) -> Run {
        let model = Some(CacheModel { data_references: 1, first_level_misses, last_level_misses: 0 });
        run(subject, allocator, Outcome::Instructions { instructions, operations: 100, model })
    }

    #[test]
    fn a_subject_without_the_first_allocators_count_has_the_counts_of_the_others() {
        let runs = [counted("a", "x", 200, 0), counted("a", "y", 100, 3), counted("b", "y", 700, 1)];
        let summary = Summary::of(&runs, "x");
        let rows = count_rows(&summary, Figure::Instructions);
        assert_eq!(rows, [["a", "2.00", "0.500"], ["b", "failed", "7.00 (count)"]]);
        let misses = count_rows(&summary, Figure::FirstLevelMisses);
        assert_eq!(misses[0], ["a", "0.00", "30.0 (count)"], "also per 1000 operations");
    }

    #[test]
    fn an_event_that_an_allocator_does_not_have_has_not_failed() {
        let event = |subject, allocator| {
            run(subject, allocator, Outcome::Figure { name: "per 1000 operations".into(), value: 4.0 })
        };
        let [lock, faults] = ["larson, 2 threads: lock of the gates", "larson, 2 threads: page faults"];
        let allocators = ["x", "y", "z"].map(|name| counted("a", name, 1, 1));
        let runs = [&allocators[..], &[event(lock, "x"), event(faults, "x"), event(faults, "y")]].concat();
        let rows = event_rows(&Summary::of(&runs, "x"));
        assert_eq!(rows, [[lock, "4.00", "–", "failed"], [faults, "4.00", "4.00", "failed"]]);
    }
}
