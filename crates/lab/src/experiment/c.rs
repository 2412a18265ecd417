//! Experiment C: a central list that hands out a batch in one step, beside one that hands out objects one at a time.
//!
//! Source: the change to Go's mcentral; published: BinaryTree17 -8.7 %, others within noise. The first table is the idea by itself, on lists of the
//! lab's own; the second is the program it was measured with, under each allocator, and Freestone with bins of one block, which makes
//! every allocation a refill.

use super::{Comparison, Experiment, inside, shown};
use crate::bench::Contender;
use crate::summary::{Figure, Summary};
use crate::{bench, options};
use anyhow::Result;

const TREES: &str = "binary_trees";
const REFILL: &str = "central_refill";
/// The two ways to refill, by the workload's `batch` parameter.
const ONE_AT_A_TIME: (&str, &str) = ("one at a time", "batch=0");
const BATCHED: (&str, &str) = ("batch known before the walk", "batch=1");
/// Published for the second, as a multiple of the first: 8.7 % less.
const PUBLISHED: &str = "0.913";
const BIN_MAX: &str = "FREESTONE_BIN_MAX";
const ONE_BLOCK: &str = "freestone, bins of 1";

/// Measures the refill by itself and the program.
pub(super) fn measure(experiment: &mut Experiment) -> Result<()> {
    let freestone = experiment.allocators.iter().find(|allocator| allocator.name == "freestone").cloned();
    let mut more = Vec::new();
    match freestone {
        Some(freestone) if options::exists(BIN_MAX) => {
            let allocator = freestone.with_options(ONE_BLOCK, &[(BIN_MAX, "1")]);
            more.push(Contender { allocator, params: Vec::new() });
        }
        Some(_) => {
            experiment.missing("this build of freestone has no option for the bins' capacity: that row is left out")?
        }
        None => {}
    }
    let trees = [experiment.job(TREES, &[])];
    experiment.run(&trees, more)?;
    let ways = [ONE_AT_A_TIME, BATCHED].map(|(name, param)| inside(name, &[param]));
    let refill = [experiment.job(REFILL, &[])];
    bench::measure_all(&refill, &ways, experiment.rounds, &mut experiment.measurement)
}

/// The refill by itself, and the program.
pub(super) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    let base = summary.allocators().first().cloned().unwrap_or_default();
    if summary.cell(REFILL, BATCHED.0, Figure::Time).is_none() {
        return Vec::new();
    }
    let mut refill = Comparison::new(
        "C: refilling a cache of 32 from a central list, two threads: time of one object",
        &["", "measured", "/ one at a time", "published for Go's BinaryTree17"],
    );
    let time = |name| shown(summary, REFILL, name, Figure::Time);
    let ratio = summary.ratio(REFILL, BATCHED.0, ONE_AT_A_TIME.0, Figure::Time);
    let ratio = ratio.map_or("–".into(), |ratio| bench::verdict(&ratio));
    refill.rows = vec![
        [ONE_AT_A_TIME.0, &time(ONE_AT_A_TIME.0), "1", "1"].map(str::to_owned).into(),
        [BATCHED.0, &time(BATCHED.0), &ratio, PUBLISHED].map(str::to_owned).into(),
    ];
    let ratio_name = format!("/ {base}");
    let title = "C: binary_trees, time of one node";
    let mut trees = Comparison::new(title, &["", "time", &ratio_name, "peak RSS"]);
    for allocator in summary.allocators().iter().filter(|name| summary.cell(TREES, name, Figure::Time).is_some()) {
        let ratio = summary.cell(TREES, allocator, Figure::Time).and_then(|cell| cell.ratio);
        trees.rows.push(vec![
            summary.label(allocator),
            shown(summary, TREES, allocator, Figure::Time),
            ratio.map_or_else(String::new, |ratio| bench::verdict(&ratio)),
            shown(summary, TREES, allocator, Figure::PeakRss),
        ]);
    }
    vec![refill, trees]
}
