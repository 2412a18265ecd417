use super::*;
use crate::allocator::description::Allocator;
use crate::results::outcome::{Outcome, Run};
use crate::workload::workload_record::WorkloadRecord;
use std::collections::BTreeMap;

/// Eight rounds of a workload: 1000 operations that take `factor` times 100 µs.
fn runs(subject: &str, allocator: &str, factor: u64) -> Vec<Run> {
    let figures = BTreeMap::from([("moved".to_owned(), 4.0), ("steps".to_owned(), 83.0)]);
    let record = |round| WorkloadRecord {
        wall_ns: factor * 100_000 + round as u64,
        user_ns: factor * 100_000,
        peak_rss_bytes: Some(factor << 20),
        figures: figures.clone(),
        ..WorkloadRecord::example()
    };
    let outcome = |round| Outcome::Workload(Box::new(record(round)));
    let run = |round| Run { subject: subject.into(), allocator: allocator.into(), round, outcome: outcome(round) };
    (0..8).map(run).collect()
}

fn summary(runs: &[Vec<Run>]) -> Summary {
    Summary::of(&runs.concat(), "system").with_versions(&[Allocator::system()])
}

fn row<'a>(comparison: &'a Comparison, name: &str) -> Vec<&'a str> {
    let row = comparison.rows.iter().find(|row| row[0] == name);
    row.unwrap_or_else(|| panic!("no row {name}: {:?}", comparison.rows)).iter().map(String::as_str).collect()
}

#[test]
fn without_the_workloads_of_an_experiment_there_is_no_table() {
    assert!(comparisons(&summary(&[runs("tiny_hot", "system", 1)])).is_empty());
}

#[test]
fn every_row_is_as_wide_as_its_header() {
    let all = summary(&[
        runs("alloc_free_pair size=1024 ops=1000", "system", 1),
        runs("alloc_free_pair size=1024 ops=1000", "TLSF (Rust)", 1),
        runs("random_mixed ops=1000000", "system", 1),
        runs("random_mixed ops=5000000", "freestone", 1),
        runs("random_mixed ops=5000000", "FREESTONE_THP=on", 2),
        runs("binary_trees", "system", 1),
        runs("central_refill", "one at a time", 2),
        runs("central_refill", "batch known before the walk", 1),
        runs("web_server", "system", 1),
        runs("pool_calloc calls=50 rounds=20000 oversize=0", "system", 1),
        runs("realloc_growth limit=500000", "system", 1),
    ]);
    let tables = comparisons(&all);
    let letters: Vec<&str> = tables.iter().map(|table| &table.title[..2]).collect();
    assert_eq!(letters, ["A:", "B:", "B:", "B:", "C:", "C:", "D:", "D:", "D:", "E:"]);
    for table in &tables {
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{}", table.title);
    }
}

#[test]
fn measured_and_published_figures_of_the_arena_are_in_the_column_of_their_size() {
    let go = Outcome::Figure { name: "ns/op".into(), value: 25.0 };
    let go = Run { subject: arena::go_subject("10KiB"), allocator: "tlsf".into(), round: 0, outcome: go };
    let subjects = ["alloc_free_pair size=1024 ops=1000", "alloc_free_pair size=102400 ops=1000"];
    let all = summary(&[runs(subjects[0], "system", 1), runs(subjects[1], "system", 3), vec![go]]);
    let tables = arena::comparisons(&all);
    assert_eq!(row(&tables[0], "malloc, system"), ["malloc, system", "100 ns", "–", "300 ns", "–"]);
    assert_eq!(row(&tables[0], "Go, tlsf"), ["Go, tlsf", "–", "25.0 ns", "–", "–"]);
    assert_eq!(row(&tables[0], "published, TLSF (M2 / EPYC, ns)")[2], "806 / 824");
    assert!(tables[1].rows.is_empty(), "nothing was measured with ten million operations");
}

#[test]
fn a_remedy_is_a_ratio_to_freestone_without_it() {
    let subject = "random_mixed ops=5000000";
    let mixed = runs("random_mixed ops=1000000", "system", 1);
    let all = summary(&[mixed, runs(subject, "freestone", 1), runs(subject, "FREESTONE_THP=on", 2)]);
    let tables = remedies::comparisons(&all);
    let table = tables.iter().find(|table| table.title.contains(subject)).unwrap();
    assert_eq!(row(table, "FREESTONE_THP=on")[2], "2.00  2.00–2.00");
    assert_eq!(row(&tables[0], "system")[1], "10.0", "100 ns are ten million operations per second");
}

#[test]
fn the_batched_refill_is_a_ratio_to_the_other() {
    let all = summary(&[
        runs(batched_refill::REFILL, batched_refill::ONE_AT_A_TIME.0, 2),
        runs(batched_refill::REFILL, batched_refill::BATCHED.0, 1),
    ]);
    assert_eq!(row(&batched_refill::comparisons(&all)[0], batched_refill::BATCHED.0)[2], "0.50  0.50–0.50");
}

#[test]
fn the_web_server_is_shown_in_seconds_for_five_runs() {
    let pool = runs("pool_calloc calls=50 rounds=20000 oversize=0", "system", 2);
    let tables = pools::comparisons(&summary(&[runs("web_server", "system", 4_000_000), pool]));
    // 400 s for a run.
    assert_eq!(row(&tables[0], "system"), ["system", "2000.000", "2.694"]);
    assert_eq!(row(&tables[1], "system")[1], "200 ns");
}

#[test]
fn growth_shows_moves_of_steps_beside_the_published_ones() {
    let tables = growth::comparisons(&summary(&[runs("realloc_growth limit=500000", "system", 1)]));
    assert_eq!(row(&tables[0], "system")[1..5], ["4 of 83", "4 of 83", "1.00 MiB", "2.3 MB"]);
}
