//! Experiment B: HAKMEM's workloads, and each of its remedies off and on.
//!
//! Source: HAKMEM's account of why it was slow: 86 % of its time went to page faults and `madvise`. Each remedy that it lists is an option of
//! Freestone. The table shows what each is worth here, as a ratio: Freestone with the option at this value over Freestone without it, compared
//! within rounds, in time, faults and memory. The row `FREESTONE_PROFILE=balanced` is the default once more, so its ratios show the noise.

use crate::measure::summary::{Figure, LOOP_ONLY, Summary};
use crate::show::published::comparison::{Comparison, NO_FIGURE, has, shown};
use crate::show::{quantity, verdict_text};

/// The allocator whose options are compared.
const FREESTONE: &str = "freestone";

/// The first workload, as measured.
const MIXED: &str = "random_mixed ops=1000000";
/// The second workload, as measured.
const TINY: &str = "tiny_hot ops=10000000";

/// The workloads of the remedies: small blocks, large ones, one that grows, many of one size, and a size mix that shifts. Their parameters
/// differ from those above, so that their rounds are not mixed with those.
pub(crate) const FOR_REMEDIES: [(&str, &[&str]); 5] = [
    ("random_mixed", &["ops=5000000"]),
    ("large_churn", &["ops=60"]),
    ("realloc_growth", &["limit=47000000", "repeats=4"]),
    ("binary_trees", &["depth=18"]),
    ("fragmentation_phases", &["live_mib=64"]),
];

/// Published for random_mixed: allocator, million operations per second, page faults, cycles, user and system time.
const PUBLISHED: [(&str, &str, &str, &str, &str); 4] = [
    ("mimalloc", "120.7", "146", "35.9 M", "10 / 1 ms"),
    ("system", "83.3", "134", "48.7 M", "12 / 1 ms"),
    ("HAKMEM", "4.84", "6762", "1138 M", "38 / 238 ms"),
    ("HAKMEM a week later", "44.4", "–", "–", "–"),
];

/// Published for tiny_hot: HAKMEM's million operations per second.
const PUBLISHED_TINY: &str = "88";

/// The remedies: what HAKMEM proposed, Freestone's option for it, and the values to compare with the default.
pub(crate) const REMEDIES: [(&str, &str, &[&str]); 9] = [
    ("profile", "FREESTONE_PROFILE", &["balanced", "throughput", "lean", "realtime"]),
    ("prefault", "FREESTONE_PREFAULT", &["touch", "willneed", "populate"]),
    ("span size", "FREESTONE_SPAN_SIZE", &["128k", "256k"]),
    ("purge frequency, by age in ms", "FREESTONE_DECAY_MS", &["0", "10000"]),
    ("purge frequency, by bytes kept", "FREESTONE_DIRTY_MAX", &["0", "64m", "256m"]),
    ("purge by MADV_FREE", "FREESTONE_PURGE", &["free"]),
    ("purge by the caller alone", "FREESTONE_BACKGROUND", &["off"]),
    ("thread-cache capacity in blocks", "FREESTONE_BIN_MAX", &["64", "16384"]),
    ("transparent huge pages", "FREESTONE_THP", &["off", "on"]),
];

fn is_remedy(allocator: &str) -> bool {
    allocator.starts_with("FREESTONE_")
}

/// The two workloads, then the remedies on each of their workloads.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if !has(summary, MIXED) {
        return Vec::new();
    }
    let remedies = FOR_REMEDIES.iter().map(|(workload, params)| remedy_table(summary, workload, params));
    [mixed(summary), tiny(summary)].into_iter().chain(remedies).collect()
}

fn plain(summary: &Summary) -> impl Iterator<Item = &str> {
    let allocators = summary.allocators().iter().map(String::as_str).filter(|allocator| !is_remedy(allocator));
    allocators.chain([LOOP_ONLY])
}

fn mops(summary: &Summary, subject: &str, allocator: &str) -> String {
    summary.cell(subject, allocator, Figure::Time).map_or(NO_FIGURE.into(), |cell| quantity::digits(1e3 / cell.median))
}

fn mixed(summary: &Summary) -> Comparison {
    let title = "B: random_mixed, 400 slots, 1 M operations; part of the time is the loop itself";
    let header = ["", "M ops/s", "published", "faults", "published", "user + sys", "published", "cycles", "published"];
    let mut comparison = Comparison::new(title, &header);
    for allocator in plain(summary) {
        let published = PUBLISHED.iter().find(|row| row.0 == allocator);
        let cpu = summary
            .cell(MIXED, allocator, Figure::Cpu)
            .map_or(NO_FIGURE.into(), |cell| quantity::time(cell.median * 1e6));
        let cycles = summary.cell(MIXED, allocator, Figure::Cycles);
        let cycles = cycles.map_or("not counted".into(), |cell| format!("{} M", quantity::digits(cell.median)));
        comparison.rows.push(vec![
            summary.label(allocator),
            mops(summary, MIXED, allocator),
            published.map_or(NO_FIGURE, |row| row.1).into(),
            shown(summary, MIXED, allocator, Figure::Faults),
            published.map_or(NO_FIGURE, |row| row.2).into(),
            cpu,
            published.map_or(NO_FIGURE, |row| row.4).into(),
            cycles,
            published.map_or(NO_FIGURE, |row| row.3).into(),
        ]);
    }
    for (name, mops, faults, cycles, times) in PUBLISHED.iter().filter(|row| row.0.starts_with("HAKMEM")) {
        let row = [name, NO_FIGURE, mops, NO_FIGURE, faults, NO_FIGURE, times, NO_FIGURE, cycles];
        comparison.rows.push(row.map(str::to_owned).into());
    }
    comparison
}

fn tiny(summary: &Summary) -> Comparison {
    let title = format!("B: tiny_hot, 8 to 128 bytes; published for HAKMEM: {PUBLISHED_TINY} M ops/s");
    let mut comparison = Comparison::new(title, &["", "M ops/s"]);
    comparison.rows =
        plain(summary).map(|allocator| vec![summary.label(allocator), mops(summary, TINY, allocator)]).collect();
    comparison
}

fn remedy_table(summary: &Summary, workload: &str, params: &[&str]) -> Comparison {
    let subject = [&[workload], params].concat().join(" ");
    let title = format!("B: {subject} under {FREESTONE}, as a multiple of the same without the option");
    let mut comparison = Comparison::new(title, &["", "user + sys", "time", "faults", "peak RSS"]);
    if !has(summary, &subject) {
        return comparison;
    }
    let figures = [Figure::Cpu, Figure::Time, Figure::Faults, Figure::PeakRss];
    let plain = figures.map(|figure| shown(summary, &subject, FREESTONE, figure));
    comparison.rows.push([vec![summary.label(FREESTONE)], plain.into()].concat());
    for allocator in summary.allocators().iter().filter(|allocator| is_remedy(allocator)) {
        let ratios = figures.map(|figure| {
            let ratio = summary.ratio(&subject, allocator, FREESTONE, figure);
            ratio.map_or_else(|| "failed".into(), |ratio| verdict_text::verdict(&ratio))
        });
        comparison.rows.push([vec![allocator.clone()], ratios.into()].concat());
    }
    comparison
}
