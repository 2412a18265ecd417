//! Experiment D: fixed-size pools in front of `calloc`.
//!
//! Source: the published pool with a linear search and its successor `hhs` with power-of-two blocks, against glibc and `tc_calloc`. Workloads: 1024-byte
//! blocks with 50 to 10000 calls, with and without an over-size half; and the web server.

use super::{Comparison, Experiment, has, inside, shown};
use crate::bench::Job;
use crate::quantity;
use crate::summary::{Figure, Summary};
use anyhow::Result;

const WEB_SERVER: &str = "web_server";
const POOL: &str = "pool_calloc";
const LINEAR: &str = "linear pool";
const LOCKED: &str = "power-of-two pool";
const UNLOCKED: &str = "power-of-two pool, no lock";
const SHARED: &str = "shared pool, lock-free";

/// The pools in front of the system's calloc, by the workloads' `front` parameter.
const FRONTS: [(&str, &str); 4] =
    [(LINEAR, "front=1"), (LOCKED, "front=3"), (UNLOCKED, "front=2"), (SHARED, "front=4")];

/// Calls of the first workload, with rounds that make each run about as long.
const CALLS: [(&str, &str); 5] = [("50", "20000"), ("100", "10000"), ("500", "400"), ("1024", "100"), ("10000", "10")];

/// Whether every second request is too large for the pool, and how that is said.
const OVERSIZE: [(&str, &str); 2] = [("0", ""), ("1", ", and every second request is too large for it")];

/// Published seconds for the web server, five runs.
const PUBLISHED: [(&str, &str); 6] = [
    ("system", "2.694"),
    (LINEAR, "27.79"),
    (LOCKED, "0.673"),
    (UNLOCKED, "0.590"),
    ("tcmalloc", "0.618"),
    ("tcmalloc in place of malloc", "0.592"),
];

/// Runs in the published total.
const PUBLISHED_RUNS: f64 = 5.0;

/// Measures both workloads.
pub(super) fn measure(experiment: &mut Experiment) -> Result<()> {
    let mut jobs = vec![experiment.job(WEB_SERVER, &[])];
    jobs.extend(pool_jobs(experiment));
    experiment.run(&jobs, FRONTS.iter().map(|(name, front)| inside(name, &[front])).collect())
}

fn pool_jobs(experiment: &Experiment) -> Vec<Job> {
    let job = |(calls, rounds), oversize| {
        experiment.job(POOL, &pool_params(calls, rounds, oversize).each_ref().map(String::as_str))
    };
    CALLS.iter().flat_map(|&calls| OVERSIZE.map(|(oversize, _)| job(calls, oversize))).collect()
}

fn pool_params(calls: &str, rounds: &str, oversize: &str) -> [String; 3] {
    [format!("calls={calls}"), format!("rounds={rounds}"), format!("oversize={oversize}")]
}

fn pool_subject((calls, rounds): (&str, &str), oversize: &str) -> String {
    format!("{POOL} {}", pool_params(calls, rounds, oversize).join(" "))
}

/// The web server, then the pool without and with the half that is too large.
pub(super) fn comparisons(summary: &Summary) -> Vec<Comparison> {
    if !has(summary, &pool_subject(CALLS[0], OVERSIZE[0].0)) {
        return Vec::new();
    }
    std::iter::once(web_server(summary)).chain(OVERSIZE.map(|(oversize, said)| pool(summary, oversize, said))).collect()
}

fn web_server(summary: &Summary) -> Comparison {
    let title = "D: the web server, 512 000 callocs of 4096 bytes, freed in a scrambled order; seconds for five runs";
    let mut comparison = Comparison::new(title, &["", "measured", "published"]);
    for allocator in summary.allocators() {
        let total = summary.records(WEB_SERVER, allocator).first().and_then(|record| {
            let cell = summary.cell(WEB_SERVER, allocator, Figure::Time)?;
            Some(format!("{:.3}", cell.median * record.operations as f64 * PUBLISHED_RUNS / 1e9))
        });
        let published = PUBLISHED.iter().find(|(name, _)| name == allocator).map_or("–", |(_, seconds)| seconds);
        comparison.rows.push(vec![summary.label(allocator), total.unwrap_or_else(|| "–".into()), published.to_owned()]);
    }
    for (name, seconds) in PUBLISHED.iter().filter(|(name, _)| !summary.allocators().iter().any(|one| one == name)) {
        comparison.rows.push(vec![(*name).to_owned(), "–".into(), (*seconds).to_owned()]);
    }
    comparison
}

fn pool(summary: &Summary, oversize: &str, said: &str) -> Comparison {
    let title = format!(
        "D: time of one calloc of 1024 bytes and its free, by how many are live at once; the pool has 1024{said}"
    );
    let mut comparison = Comparison::new(title, &[""]);
    comparison.header.extend(CALLS.map(|(calls, _)| quantity::count(calls.parse().unwrap_or(0))));
    for allocator in summary.allocators() {
        let times = CALLS.map(|calls| shown(summary, &pool_subject(calls, oversize), allocator, Figure::Time));
        comparison.rows.push([&[summary.label(allocator)][..], &times].concat());
    }
    comparison
}
