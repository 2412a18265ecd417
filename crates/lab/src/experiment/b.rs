//! Experiment B: HAKMEM's workloads, and each of its remedies off and on.
//!
//! Source: HAKMEM's account of why it was slow: page faults and `madvise` in 86 % of its time. Each remedy it lists is an option of Freestone; what
//! each was worth here is the time of the workload with the option at one value over its time at another.

use super::{Comparison, Experiment, has, shown};
use crate::allocator::Allocator;
use crate::bench::Contender;
use crate::summary::{Figure, LOOP_ONLY, Summary};
use crate::{bench, options, quantity};
use anyhow::Result;

const MIXED: &str = "random_mixed ops=1000000";
const TINY: &str = "tiny_hot ops=10000000";
const CHURN: &str = "fragmentation_phases";

/// Published for random_mixed: allocator, million operations a second, page faults, cycles, user and system time.
const PUBLISHED: [(&str, &str, &str, &str, &str); 4] = [
    ("mimalloc", "120.7", "146", "35.9 M", "10 / 1 ms"),
    ("system", "83.3", "134", "48.7 M", "12 / 1 ms"),
    ("HAKMEM", "4.84", "6762", "1138 M", "38 / 238 ms"),
    ("HAKMEM a week later", "44.4", "–", "–", "–"),
];

/// Published for tiny_hot: HAKMEM's million operations a second.
const PUBLISHED_TINY: &str = "88";

/// The remedies: what HAKMEM called for, the option it is here, and the values to compare.
const REMEDIES: [(&str, &str, &[&str]); 7] = [
    ("prefault", "FREESTONE_PREFAULT", &["off", "touch", "willneed", "populate"]),
    ("span size by class", "FREESTONE_SPAN_SIZE", &["fixed", "class"]),
    ("purge frequency (age in ms)", "FREESTONE_DECAY_MS", &["0", "100", "1000", "60000"]),
    ("purge granularity (dirty bytes kept)", "FREESTONE_DIRTY_MAX", &["0", "1m", "16m", "1g"]),
    ("thread-cache capacity (blocks)", "FREESTONE_BIN_MAX", &["1", "64", "512", "4096"]),
    ("transparent huge pages", "FREESTONE_THP", &["off", "auto", "on"]),
    ("profile", "FREESTONE_PROFILE", &["balanced", "throughput", "lean", "realtime"]),
];

/// Measures the workloads under every allocator, then the remedies under Freestone.
pub(super) fn measure(experiment: &mut Experiment) -> Result<()> {
    let jobs = [experiment.job("random_mixed", &["ops=1000000"]), experiment.job("tiny_hot", &["ops=10000000"])];
    experiment.run(&jobs, Vec::new())?;
    let freestone = experiment.allocators.iter().find(|allocator| allocator.name == "freestone").cloned();
    match freestone {
        Some(freestone) => remedies(experiment, &freestone),
        None => experiment.missing("the remedies are options of freestone, which was not selected"),
    }
}

fn remedies(experiment: &mut Experiment, freestone: &Allocator) -> Result<()> {
    let mut contenders = vec![Contender { allocator: freestone.clone(), params: Vec::new() }];
    for (remedy, option, values) in REMEDIES {
        if !options::exists(option) {
            experiment.missing(&format!("remedy '{remedy}': this build of freestone has no option {option}"))?;
            continue;
        }
        contenders.extend(values.iter().map(|value| Contender {
            allocator: freestone.with_options(&format!("{option}={value}"), &[(option, value)]),
            params: Vec::new(),
        }));
    }
    let jobs = [experiment.job("random_mixed", &["ops=1000000"]), experiment.job(CHURN, &[])];
    bench::measure_all(&jobs, &contenders, experiment.rounds, &mut experiment.measurement)
}

fn is_remedy(allocator: &str) -> bool {
    allocator.starts_with("FREESTONE_")
}

/// The two workloads, and the remedies.
pub(super) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if has(summary, MIXED) { vec![mixed(summary), tiny(summary), remedy_table(summary)] } else { Vec::new() }
}

fn plain(summary: &Summary) -> impl Iterator<Item = &str> {
    let allocators = summary.allocators().iter().map(String::as_str).filter(|allocator| !is_remedy(allocator));
    allocators.chain([LOOP_ONLY])
}

fn mops(summary: &Summary, subject: &str, allocator: &str) -> String {
    summary.cell(subject, allocator, Figure::Time).map_or("–".into(), |cell| quantity::digits(1e3 / cell.median))
}

fn mixed(summary: &Summary) -> Comparison {
    let title = "B: random_mixed, 400 slots, 1 M operations; the loop by itself takes part of the time";
    let header = ["", "M ops/s", "published", "faults", "published", "user + sys", "published", "cycles, published"];
    let mut comparison = Comparison::new(title, &header);
    for allocator in plain(summary) {
        let published = PUBLISHED.iter().find(|row| row.0 == allocator);
        let cpu =
            summary.cell(MIXED, allocator, Figure::Cpu).map_or("–".into(), |cell| quantity::time(cell.median * 1e6));
        comparison.rows.push(vec![
            allocator.to_owned(),
            mops(summary, MIXED, allocator),
            published.map_or("–", |row| row.1).into(),
            shown(summary, MIXED, allocator, Figure::Faults),
            published.map_or("–", |row| row.2).into(),
            cpu,
            published.map_or("–", |row| row.4).into(),
            published.map_or("–", |row| row.3).into(),
        ]);
    }
    for (name, mops, faults, cycles, times) in PUBLISHED.iter().filter(|row| row.0.starts_with("HAKMEM")) {
        let row = [name, "–", mops, "–", faults, "–", times, cycles];
        comparison.rows.push(row.map(str::to_owned).into());
    }
    comparison
}

fn tiny(summary: &Summary) -> Comparison {
    let title = format!("B: tiny_hot, 8 to 128 bytes; published for HAKMEM: {PUBLISHED_TINY} M ops/s");
    let mut comparison = Comparison::new(title, &["", "M ops/s"]);
    comparison.rows =
        plain(summary).map(|allocator| vec![allocator.to_owned(), mops(summary, TINY, allocator)]).collect();
    comparison
}

fn remedy_table(summary: &Summary) -> Comparison {
    let header = ["", "random_mixed", "faults", "fragmentation_phases", "faults", "peak RSS"];
    let mut comparison =
        Comparison::new("B: the remedies, under freestone; the first line is freestone as it is", &header);
    if !summary.allocators().iter().any(|allocator| is_remedy(allocator)) {
        return comparison;
    }
    let freestone = summary.allocators().iter().filter(|allocator| allocator.as_str() == "freestone");
    for allocator in freestone.chain(summary.allocators().iter().filter(|allocator| is_remedy(allocator))) {
        comparison.rows.push(vec![
            allocator.clone(),
            shown(summary, MIXED, allocator, Figure::Time),
            shown(summary, MIXED, allocator, Figure::Faults),
            shown(summary, CHURN, allocator, Figure::Time),
            shown(summary, CHURN, allocator, Figure::Faults),
            shown(summary, CHURN, allocator, Figure::PeakRss),
        ]);
    }
    comparison
}
