//! Experiment C: a central list that hands out a batch in one step, beside one that hands out objects one at a time.
//!
//! Source: the change to Go's mcentral; published: BinaryTree17 -8.7 %, others within noise. The first table is the idea by itself, on lists of the
//! lab's own; the second is the program it was measured with, under each allocator, and Freestone with bins of one block, which makes
//! every allocation a refill.

use super::{Comparison, Experiment, has, shown};
use crate::bench::Contender;
use crate::summary::{Figure, Summary};
use crate::{bench, options};
use anyhow::Result;

const TREES: &str = "binary_trees";
/// The two ways to refill, and what they are called.
const REFILLS: [(&str, &str); 2] =
    [("central_refill batch=0", "one at a time"), ("central_refill batch=1", "batch known before the walk")];
/// Published for each, as a multiple of the first: 8.7 % less.
const PUBLISHED: [&str; 2] = ["1", "0.913"];
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
    let refills = [experiment.job("central_refill", &["batch=0"]), experiment.job("central_refill", &["batch=1"])];
    let first = Contender::plain(&experiment.allocators[..1]);
    bench::measure_all(&refills, &first, experiment.rounds, &mut experiment.measurement)
}

/// The refill by itself, and the program.
pub(super) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    let base = summary.allocators().first().cloned().unwrap_or_default();
    if !has(summary, REFILLS[0].0) {
        return Vec::new();
    }
    let mut refill = Comparison::new(
        "C: refilling a cache of 32 from a central list, two threads: time of one object",
        &["", "measured", "/ one at a time", "published for Go's BinaryTree17"],
    );
    let time = |subject| summary.cell(subject, &base, Figure::Time).map(|cell| cell.median);
    let of_first = |subject| Some(time(subject)? / time(REFILLS[0].0)?);
    refill.rows = REFILLS
        .iter()
        .zip(PUBLISHED)
        .map(|(&(subject, name), published)| {
            let ratio = of_first(subject).map_or("–".into(), |ratio| format!("{ratio:.2}"));
            vec![name.to_owned(), shown(summary, subject, &base, Figure::Time), ratio, published.to_owned()]
        })
        .collect();
    let ratio_name = format!("/ {base}");
    let title = "C: binary_trees, time of one node";
    let mut trees = Comparison::new(title, &["", "time", &ratio_name, "peak RSS"]);
    for allocator in summary.allocators() {
        let ratio = summary.cell(TREES, allocator, Figure::Time).and_then(|cell| cell.ratio);
        trees.rows.push(vec![
            allocator.clone(),
            shown(summary, TREES, allocator, Figure::Time),
            ratio.map_or_else(String::new, |ratio| bench::verdict(&ratio)),
            shown(summary, TREES, allocator, Figure::PeakRss),
        ]);
    }
    vec![refill, trees]
}
