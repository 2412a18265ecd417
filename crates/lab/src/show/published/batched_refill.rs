//! Experiment C: a central list that hands out a batch in one step, beside one that hands out objects one at a time.
//!
//! Source: the change to Go's mcentral; published: BinaryTree17 -8.7 %, others within noise. The first table shows the idea by itself, on the
//! lab's own lists. The second shows the program that it was measured with, under each allocator, and under Freestone with bins of one block,
//! which makes every allocation a refill.

use crate::measure::summary::{Figure, Summary};
use crate::show::published::comparison::{Comparison, NO_FIGURE, shown};
use crate::show::verdict_text;

/// The workload of the second table.
pub(crate) const TREES: &str = "binary_trees";
/// The workload of the first table.
pub(crate) const REFILL: &str = "central_refill";
/// The first method of refilling: its name, and the workload's parameter.
pub(crate) const ONE_AT_A_TIME: (&str, &str) = ("one at a time", "batch=0");
/// The second method.
pub(crate) const BATCHED: (&str, &str) = ("batch known before the walk", "batch=1");
/// Published for the second way, as a multiple of the first: 8.7 % less.
const PUBLISHED: &str = "0.913";

/// The refill by itself, then the program.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    let base = summary.allocators().first().cloned().unwrap_or_default();
    if summary.cell(REFILL, BATCHED.0, Figure::Time).is_none() {
        return Vec::new();
    }
    let mut refill = Comparison::new(
        "C: refilling a cache of 32 from a central list, two threads: time per object",
        &["", "measured", "/ one at a time", "published for Go's BinaryTree17"],
    );
    let time = |name| shown(summary, REFILL, name, Figure::Time);
    let ratio = summary.ratio(REFILL, BATCHED.0, ONE_AT_A_TIME.0, Figure::Time);
    let ratio = ratio.map_or(NO_FIGURE.into(), |ratio| verdict_text::verdict(&ratio));
    refill.rows = vec![
        [ONE_AT_A_TIME.0, &time(ONE_AT_A_TIME.0), "1", "1"].map(str::to_owned).into(),
        [BATCHED.0, &time(BATCHED.0), &ratio, PUBLISHED].map(str::to_owned).into(),
    ];
    let ratio_name = format!("/ {base}");
    let title = "C: binary_trees: time per node";
    let mut trees = Comparison::new(title, &["", "time", &ratio_name, "peak RSS"]);
    for allocator in summary.allocators().iter().filter(|name| summary.cell(TREES, name, Figure::Time).is_some()) {
        let ratio = summary.cell(TREES, allocator, Figure::Time).and_then(|cell| cell.ratio);
        trees.rows.push(vec![
            summary.label(allocator),
            shown(summary, TREES, allocator, Figure::Time),
            ratio.map_or_else(String::new, |ratio| verdict_text::verdict(&ratio)),
            shown(summary, TREES, allocator, Figure::PeakRss),
        ]);
    }
    vec![refill, trees]
}
