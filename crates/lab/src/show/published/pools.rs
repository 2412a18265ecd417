//! Experiment D: fixed-size pools in front of `calloc`.
//!
//! Source: the published pool with a linear search and its successor `hhs` with power-of-two blocks, against glibc and `tc_calloc`. The
//! workloads are the web server, and blocks of 1024 bytes with 50 to 10000 calls, with and without requests that are too large for the pool.

use crate::measure::summary::{Figure, Summary};
use crate::show::published::comparison::{Comparison, NO_FIGURE, has, shown};
use crate::show::quantity;

/// The first workload.
pub(crate) const WEB_SERVER: &str = "web_server";
/// The second workload.
pub(crate) const POOL: &str = "pool_calloc";
const LINEAR: &str = "linear pool";
const LOCKED: &str = "power-of-two pool";
const UNLOCKED: &str = "power-of-two pool, no lock";
const SHARED: &str = "shared pool, lock-free";

/// The pools in front of the system's calloc: their names, and the workloads' parameter.
pub(crate) const FRONT_ENDS: [(&str, &str); 4] =
    [(LINEAR, "front=1"), (LOCKED, "front=3"), (UNLOCKED, "front=2"), (SHARED, "front=4")];

/// Numbers of calls in the second workload, each with the rounds that keep the runs of the linear pool about equally long.
pub(crate) const CALLS: [(&str, &str); 5] =
    [("50", "20000"), ("100", "10000"), ("500", "400"), ("1024", "100"), ("10000", "10")];

/// Whether every second request is too large for the pool, and what the title says in that case.
pub(crate) const OVERSIZE: [(&str, &str); 2] = [("0", ""), ("1", ", and every second request is too large for it")];

/// Published seconds for five runs of the web server.
const PUBLISHED: [(&str, &str); 6] = [
    ("system", "2.694"),
    (LINEAR, "27.79"),
    (LOCKED, "0.673"),
    (UNLOCKED, "0.590"),
    ("tcmalloc", "0.618"),
    ("tcmalloc in place of malloc", "0.592"),
];

/// The number of runs in the published total.
const PUBLISHED_RUNS: f64 = 5.0;

/// The parameters of one job of the second workload.
pub(crate) fn pool_params(calls: &str, rounds: &str, oversize: &str) -> [String; 3] {
    [format!("calls={calls}"), format!("rounds={rounds}"), format!("oversize={oversize}")]
}

fn pool_subject((calls, rounds): (&str, &str), oversize: &str) -> String {
    format!("{POOL} {}", pool_params(calls, rounds, oversize).join(" "))
}

/// The web server, then the pool, without and with requests that are too large for it.
pub(crate) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if !has(summary, &pool_subject(CALLS[0], OVERSIZE[0].0)) {
        return Vec::new();
    }
    std::iter::once(web_server(summary))
        .chain(OVERSIZE.map(|(oversize, addition)| pool(summary, oversize, addition)))
        .collect()
}

fn web_server(summary: &Summary) -> Comparison {
    let title = "D: the web server, 512 000 callocs of 4096 bytes, freed in a scrambled order; seconds for five runs";
    let mut comparison = Comparison::new(title, &["", "measured", "published"]);
    for allocator in summary.allocators() {
        let total = summary.records(WEB_SERVER, allocator).first().and_then(|record| {
            let cell = summary.cell(WEB_SERVER, allocator, Figure::Time)?;
            Some(format!("{:.3}", cell.median * record.operations as f64 * PUBLISHED_RUNS / 1e9))
        });
        let published = PUBLISHED.iter().find(|(name, _)| name == allocator).map_or(NO_FIGURE, |(_, seconds)| seconds);
        comparison.rows.push(vec![
            summary.label(allocator),
            total.unwrap_or_else(|| NO_FIGURE.into()),
            published.to_owned(),
        ]);
    }
    for (name, seconds) in PUBLISHED.iter().filter(|(name, _)| !summary.allocators().iter().any(|one| one == name)) {
        comparison.rows.push(vec![(*name).to_owned(), NO_FIGURE.into(), (*seconds).to_owned()]);
    }
    comparison
}

fn pool(summary: &Summary, oversize: &str, addition: &str) -> Comparison {
    let title = format!(
        "D: time of one calloc of 1024 bytes and its free, by the number of live blocks; the pool has 1024{addition}"
    );
    let mut comparison = Comparison::new(title, &[""]);
    comparison.header.extend(CALLS.map(|(calls, _)| quantity::count(calls.parse().unwrap_or(0))));
    for allocator in summary.allocators() {
        let times = CALLS.map(|calls| shown(summary, &pool_subject(calls, oversize), allocator, Figure::Time));
        comparison.rows.push([&[summary.label(allocator)][..], &times].concat());
    }
    comparison
}
