//! The tables of `freestone bench`: the ranking first, then time and memory, with a row per workload and a column per allocator.

use crate::measure::ranking::{self, ASPECTS, Tally};
use crate::measure::statistics::Ratio;
use crate::measure::summary::{Cell, Figure, LOOP_ONLY, Summary};
use crate::show::{quantity, table, verdict_text};
use crate::workload::workload_record::Latency;

/// Prints all tables.
pub(crate) fn print(summary: &Summary) {
    print_ranking(summary);
    println!("\nTime per operation, as a multiple of {}'s (below 1: faster)", base(summary));
    print_figure(summary, Figure::Time, quantity::time);
    println!("\nPeak memory, as a multiple of {}'s (below 1: leaner)", base(summary));
    print_figure(summary, Figure::PeakRss, quantity::bytes);
    print_own_figures(summary);
    print_latencies(summary);
    print_counts(summary, Figure::Cycles, "Processor cycles per operation, including the loop");
    print_counts(summary, Figure::CacheMisses, "Cache misses per operation, including the loop");
    if let Some(why) = summary.without_counters() {
        println!("\nNo cycles and no cache misses: {why}");
    }
}

fn base(summary: &Summary) -> &str {
    summary.allocators().first().map_or("", String::as_str)
}

/// The headings of the columns of all allocators.
fn headings(summary: &Summary) -> impl Iterator<Item = String> {
    summary.allocators().iter().map(|name| summary.heading(name))
}

/// Prints which allocators need least, and where Freestone is behind another; nothing if there is only one allocator.
pub(crate) fn print_ranking(summary: &Summary) {
    for aspect in &ASPECTS {
        let with_tally = |name: &str| match Tally::of(summary, name, aspect.figure) {
            Some(tally) if tally.less + tally.more > 0 => {
                format!("{name} ({:.2} times {}'s: {})", tally.mean, base(summary), tally.counted(aspect))
            }
            _ => name.to_owned(),
        };
        ranking::least(summary, aspect, with_tally).into_iter().for_each(|line| println!("{line}"));
    }
    ASPECTS.iter().filter_map(|aspect| ranking::defeats(summary, aspect)).for_each(|line| println!("{line}"));
}

/// Prints the table with intervals if they fit the terminal, and without them otherwise.
pub(crate) fn print_figure(summary: &Summary, figure: Figure, show: fn(f64) -> String) {
    let (header, rows) = figure_table(summary, figure, show, verdict_text::verdict);
    let kept = header.len() - summary.allocators().len() + 1;
    let (figures, header, rows) = if table::fits(&header, &rows) {
        ("median ratio and its 95 % interval", header, rows)
    } else {
        let (header, rows) = figure_table(summary, figure, show, verdict_text::short_verdict);
        ("median ratios; the intervals are on the page and in --json", header, rows)
    };
    table::print(&header, &rows, kept);
    if summary.allocators().len() > 1 {
        println!("{}", verdict_text::legend(&rows, figures));
    }
}

fn figure_table(
    summary: &Summary,
    figure: Figure,
    show: fn(f64) -> String,
    say: fn(&Ratio) -> String,
) -> (Vec<String>, Vec<Vec<String>>) {
    let others = || summary.allocators().iter().skip(1);
    let has_loop = |subject: &String| summary.cell(subject, LOOP_ONLY, figure).is_some();
    let loops = figure == Figure::Time && summary.subjects().iter().any(has_loop);
    let mut header = vec![String::new(), summary.heading(base(summary))];
    header.extend(loops.then(|| "loop alone".to_owned()));
    header.extend(others().map(|name| summary.heading(name)));
    let row = |subject: &String| {
        let plain = |allocator| summary.cell(subject, allocator, figure).map(|cell| show(cell.median));
        let multiple = |cell: Cell| cell.ratio.as_ref().map_or_else(|| show(cell.median), say);
        let mut row = vec![subject.clone(), plain(base(summary)).unwrap_or_else(failed)];
        row.extend(loops.then(|| plain(LOOP_ONLY).unwrap_or_default()));
        row.extend(others().map(|name| summary.cell(subject, name, figure).map_or_else(failed, multiple)));
        row
    };
    let is_measured =
        |subject: &&String| summary.allocators().iter().any(|name| summary.cell(subject, name, figure).is_some());
    (header, summary.subjects().iter().filter(is_measured).map(row).collect())
}

fn failed() -> String {
    "failed".into()
}

fn print_own_figures(summary: &Summary) {
    let mut rows = Vec::new();
    for subject in summary.subjects() {
        let first = summary.allocators().iter().find_map(|name| summary.records(subject, name).first().copied());
        for name in first.into_iter().flat_map(|record| record.figures.keys()) {
            let mut row = vec![subject.clone(), name.clone()];
            row.extend(
                summary.allocators().iter().map(|allocator| {
                    summary.own_figure(subject, allocator, name).map_or_else(failed, quantity::figure)
                }),
            );
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return;
    }
    println!("\nFigures that the workloads report");
    let mut header = vec![String::new(), String::new()];
    header.extend(headings(summary));
    table::print(&header, &rows, 2);
}

fn print_latencies(summary: &Summary) {
    for subject in summary.subjects() {
        let found = summary.latencies(subject);
        let Some((_, first)) = found.first() else { continue };
        println!("\nLatency of one operation in {subject}, including {} ns for reading the clock", first.clock_ns);
        let mut header = vec![String::new()];
        header.extend(first.percentiles.iter().map(|(percentile, _)| quantity::percentile(*percentile)));
        let row = |(allocator, latency): &(&String, Latency)| {
            let times = latency.percentiles.iter().map(|&(_, nanoseconds)| quantity::time(nanoseconds as f64));
            std::iter::once(summary.label(allocator)).chain(times).collect()
        };
        table::print(&header, &found.iter().map(row).collect::<Vec<_>>(), 1);
    }
}

fn print_counts(summary: &Summary, figure: Figure, title: &str) {
    let mut header = vec![String::new()];
    header.extend(headings(summary));
    let mut rows = Vec::new();
    for subject in summary.subjects() {
        let cells: Vec<Option<Cell>> =
            summary.allocators().iter().map(|name| summary.cell(subject, name, figure)).collect();
        if cells.iter().any(Option::is_some) {
            let mut row = vec![subject.clone()];
            row.extend(cells.into_iter().map(|cell| cell.map_or_else(failed, |cell| quantity::digits(cell.median))));
            rows.push(row);
        }
    }
    if !rows.is_empty() {
        println!("\n{title}");
        table::print(&header, &rows, 1);
    }
}
