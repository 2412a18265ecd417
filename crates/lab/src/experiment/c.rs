//! Experiment C: a central list that hands out a batch in one step, beside one that hands out objects one at a time.
//!
//! Source: the change to Go's mcentral; published: BinaryTree17 -8.7 %, others within noise. The first table is the idea by itself, on lists of the
//! lab's own; the second is the program it was measured with, under each allocator, and Freestone with bins of one block, which makes
//! every allocation a refill.

use super::{Experiment, Print, shown};
use crate::bench::Contender;
use crate::summary::{Figure, Summary};
use crate::{bench, options, table};
use anyhow::Result;

const TREES: &str = "binary_trees";
const BIN_MAX: &str = "FREESTONE_BIN_MAX";
const ONE_BLOCK: &str = "freestone, bins of 1";

/// Measures the refill by itself and the program.
pub(super) fn measure(experiment: &mut Experiment) -> Result<Print> {
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
    bench::measure_all(&refills, &first, experiment.rounds, &mut experiment.measurement)?;
    Ok(Box::new(print))
}

fn print(summary: &Summary) {
    let base = summary.allocators().first().cloned().unwrap_or_default();
    println!("\nRefilling a cache of 32 from a central list, two threads: time of one object");
    let mut table = table::new(&["", "measured"].map(str::to_owned));
    for (params, name) in [("batch=0", "one at a time"), ("batch=1", "batch known before the walk")] {
        let subject = format!("central_refill {params}");
        table.add_row(vec![name.to_owned(), shown(summary, &subject, &base, Figure::Time)]);
    }
    println!("{table}\n\nbinary_trees: time of one node (published for Go's batch: 8.7 % less)");
    let mut table = table::new(&["".to_owned(), "time".to_owned(), format!("/ {base}"), "peak RSS".to_owned()]);
    for allocator in summary.allocators() {
        let ratio = summary.cell(TREES, allocator, Figure::Time).and_then(|cell| cell.ratio);
        table.add_row(vec![
            allocator.clone(),
            shown(summary, TREES, allocator, Figure::Time),
            ratio.map_or_else(String::new, |ratio| bench::verdict(&ratio)),
            shown(summary, TREES, allocator, Figure::PeakRss),
        ]);
    }
    println!("{table}");
}
