//! Experiment E: a buffer that grows by an eighth with `realloc`, to half a megabyte and to 47.
//!
//! Source: "mimalloc, explained". The expected result, before any new figure is believed: glibc moves the block least, mimalloc 2 most.

use crate::measure::summary::{Figure, Summary};
use crate::show::published::comparison::{Comparison, NO_FIGURE, has, shown};
use crate::show::quantity;

/// One row of the published table.
struct PublishedRow {
    allocator: &'static str,
    limit: &'static str,
    moved: &'static str,
    peak: &'static str,
    faults: &'static str,
    cpu: &'static str,
}

const fn row(
    limit: &'static str,
    allocator: &'static str,
    moved: &'static str,
    peak: &'static str,
    faults: &'static str,
    cpu: &'static str,
) -> PublishedRow {
    PublishedRow { allocator, limit, moved, peak, faults, cpu }
}

const PUBLISHED: [PublishedRow; 9] = [
    row("500000", "system", "4 of 83", "2.3 MB", "215", "–"),
    row("500000", "mimalloc", "56", "5.1 MB", "954", "–"),
    row("500000", "mimalloc2", "56", "5.1 MB", "954", "–"),
    row("500000", "jemalloc", "36", "4.5 MB", "371", "–"),
    row("47000000", "system", "11 of 122", "47.8 MB", "11 601", "0.02 s"),
    row("47000000", "mimalloc", "95", "123.9 MB", "103 192", "0.17 s"),
    row("47000000", "mimalloc2", "95", "123.9 MB", "103 192", "0.17 s"),
    row("47000000", "jemalloc", "55", "283.8 MB", "72 651", "0.12 s"),
    row("47000000", "mimalloc, cache reset", "95", "86.7 MB", "103 470", "0.17 s"),
];

/// The workload.
pub(crate) const WORKLOAD: &str = "realloc_growth";

/// The sizes in bytes that the buffer grows to, and their names.
pub(crate) const LIMITS: [(&str, &str); 2] = [("500000", "0.5 MB"), ("47000000", "47 MB")];

/// One table per size.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    LIMITS.iter().map(|(limit, title)| of_size(summary, limit, title)).collect()
}

fn of_size(summary: &Summary, limit: &str, title: &str) -> Comparison {
    let title = format!("E: growing to {title} by an eighth (published figures of mimalloc are of version 1)");
    let header = ["", "moved", "published", "peak RSS", "published", "faults", "published", "user + sys", "published"];
    let mut comparison = Comparison::new(title, &header);
    let subject = format!("{WORKLOAD} limit={limit}");
    if !has(summary, &subject) {
        return comparison;
    }
    for allocator in summary.allocators() {
        let published = PUBLISHED.iter().find(|row| row.limit == limit && row.allocator == allocator.as_str());
        let of = |pick: fn(&PublishedRow) -> &'static str| published.map_or(NO_FIGURE, pick).to_owned();
        let own = |name: &str| summary.own_figure(&subject, allocator, name);
        let moved =
            own("moved").zip(own("steps")).map_or(NO_FIGURE.into(), |(moved, steps)| format!("{moved} of {steps}"));
        let cpu = summary.records(&subject, allocator).first().and_then(|record| {
            let cell = summary.cell(&subject, allocator, Figure::Cpu)?;
            Some(quantity::time(cell.median * record.operations as f64))
        });
        comparison.rows.push(vec![
            summary.label(allocator),
            moved,
            of(|row| row.moved),
            shown(summary, &subject, allocator, Figure::PeakRss),
            of(|row| row.peak),
            shown(summary, &subject, allocator, Figure::Faults),
            of(|row| row.faults),
            cpu.unwrap_or_else(|| NO_FIGURE.into()),
            of(|row| row.cpu),
        ]);
    }
    comparison
}
