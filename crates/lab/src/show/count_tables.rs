//! The tables of `freestone bench --count`: counts per operation, and the others' as multiples of the first allocator's.

use crate::measure::summary::{Figure, Summary};
use crate::show::{quantity, table};

/// The counts of callgrind, in the order of the tables.
const COUNTS: [(Figure, &str); 4] = [
    (Figure::Instructions, "Instructions per operation, including the loop"),
    (Figure::DataReferences, "Data references per operation"),
    (Figure::FirstLevelMisses, "First-level misses per 1000 operations, in callgrind's model"),
    (Figure::LastLevelMisses, "Last-level misses per 1000 operations, in callgrind's model"),
];

/// Prints all tables.
pub(crate) fn print(summary: &Summary) {
    let Some((base, others)) = summary.allocators().split_first() else { return };
    let mut header = vec![String::new()];
    header.extend(summary.allocators().iter().map(|name| summary.heading(name)));
    for (figure, title) in COUNTS {
        let per = if matches!(figure, Figure::FirstLevelMisses | Figure::LastLevelMisses) { 1000.0 } else { 1.0 };
        let row = |subject: &String| {
            let count = |name: &str| Some(summary.cell(subject, name, figure)?.median);
            let first = count(base)?;
            let cells = others.iter().map(|name| count(name).map_or("failed".into(), |count| multiple(count, first)));
            Some([subject.clone(), quantity::digits(first * per)].into_iter().chain(cells).collect())
        };
        let rows: Vec<Vec<String>> = summary.subjects().iter().filter_map(row).collect();
        if !rows.is_empty() {
            println!("\n{title}; the others as multiples of {base}'s");
            table::print(&header, &rows, 1);
        }
    }
    print_events(summary, &header);
}

fn multiple(count: f64, first: f64) -> String {
    if first > 0.0 { format!("{:.3}", count / first) } else { quantity::digits(count) }
}

/// Prints the events of workloads with many threads.
fn print_events(summary: &Summary, header: &[String]) {
    let mut subjects: Vec<&str> = summary.kept_figures().iter().map(|run| run.subject.as_str()).collect();
    subjects.dedup();
    let mut seen = std::collections::BTreeSet::new();
    subjects.retain(|subject| seen.insert(*subject));
    let row = |subject: &&str| {
        let cells = summary.allocators().iter().map(|name| summary.kept_figure(subject, name));
        let cells = cells.map(|value| value.map_or("failed".into(), quantity::digits));
        std::iter::once((*subject).to_owned()).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = subjects.iter().map(row).collect();
    if !rows.is_empty() {
        println!("\nEvents per 1000 operations, of whole processes; they depend on the schedule");
        table::print(header, &rows, 1);
    }
}
