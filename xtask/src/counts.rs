//! The instructions of workloads under Freestone, counted by the lab with callgrind, and compared with `counts.golden`.
//!
//! A count is that of a whole measured section, per operation, loop included. Counts repeat exactly on one machine; other compilers of the C library
//! move them a little.

use crate::process::{build_library, cargo, is_installed, output, root, run as run_command, target};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// A count may differ from the golden one by this part of it: 0.5 %.
const TOLERANCE: f64 = 0.005;

const WORKLOADS: [&str; 12] = [
    "random_mixed",
    "tiny_hot",
    "alloc_free_pair",
    "pool_calloc",
    "web_server",
    "binary_trees",
    "string_churn",
    "vec_growth",
    "hash_map",
    "trace_python",
    "trace_sqlite",
    "trace_gcc",
];

/// Counts, and compares with the golden file; with `bless`, writes that file.
///
/// # Errors
/// The lab cannot be built or fails, or a count differs.
pub(crate) fn run(bless: bool) -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) || !is_installed("valgrind") {
        println!("skipped: counts are taken on x86-64 Linux, by valgrind (apt install valgrind)");
        return Ok(());
    }
    build_library()?;
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-lab"]))?;
    let results = target().join("lab-check/counts.jsonl");
    let mut lab = Command::new(target().join("release/freestone"));
    lab.args(["bench", "--count", "--json", "--no-report", "--allocator", "freestone", "--out"]).arg(results);
    let counts = counts(&output(lab.args(WORKLOADS).current_dir(root()))?)?;
    ensure!(counts.len() == WORKLOADS.len(), "not every workload was counted, only: {counts:?}");
    let file = root().join("counts.golden");
    if bless {
        return fs::write(file, text(&counts)).context("cannot write counts.golden");
    }
    let golden =
        fs::read_to_string(file).context("cannot read counts.golden: `cargo xtask count --bless` writes it")?;
    let wrong = differences(&counts, &golden);
    if !wrong.is_empty() {
        bail!("{}\nif that is meant: cargo xtask count --bless", wrong.join("\n"));
    }
    println!("{} workloads take the instructions of counts.golden, within {} %", counts.len(), TOLERANCE * 100.0);
    Ok(())
}

/// Instructions per operation by workload, in the JSON of `freestone bench --count`.
fn counts(json: &str) -> Result<BTreeMap<String, f64>> {
    let summary: serde_json::Value = serde_json::from_str(json).context("the lab printed no JSON")?;
    let cells = summary["cells"].as_array().context("the lab's JSON has no cells")?;
    let counted = cells.iter().filter(|cell| cell["figure"] == "instructions");
    let count =
        |cell: &serde_json::Value| Some((cell["subject"].as_str()?.to_owned(), cell["cell"]["median"].as_f64()?));
    Ok(counted.filter_map(count).collect())
}

fn text(counts: &BTreeMap<String, f64>) -> String {
    let mut text =
        String::from("# Instructions per operation under Freestone: `cargo xtask count --bless` writes this file.\n");
    for (workload, count) in counts {
        let _ = writeln!(text, "{workload} {count:.2}");
    }
    text
}

fn differences(counts: &BTreeMap<String, f64>, golden: &str) -> Vec<String> {
    let held: BTreeMap<&str, f64> = golden
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, n)| Some((name, n.parse().ok()?)))
        .collect();
    let difference = |(workload, &count): (&String, &f64)| match held.get(workload.as_str()) {
        None => Some(format!("{workload} is not in counts.golden: {count:.2} instructions per operation")),
        Some(&golden) if (count / golden - 1.0).abs() > TOLERANCE => {
            Some(format!("{workload}: {count:.2} instructions per operation, {golden:.2} in counts.golden"))
        }
        Some(_) => None,
    };
    counts.iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_within_the_tolerance_passes_and_others_are_named() {
        let counts = |of_a: f64| BTreeMap::from([("a".to_owned(), of_a), ("b".to_owned(), 7.0)]);
        let golden = text(&counts(1000.0));
        assert!(differences(&counts(1004.9), &golden).is_empty() && differences(&counts(995.1), &golden).is_empty());
        assert_eq!(differences(&counts(1006.0), &golden).len(), 1);
        assert!(differences(&counts(1000.0), "a 1000\n")[0].starts_with("b is not in counts.golden"));
    }

    #[test]
    fn only_instructions_are_read_from_the_labs_json() {
        let json = r#"{"cells": [{"subject": "a", "figure": "instructions", "cell": {"median": 5.5}},
            {"subject": "a", "figure": "last_level_misses", "cell": {"median": 1.0}}]}"#;
        assert_eq!(counts(json).unwrap(), BTreeMap::from([("a".to_owned(), 5.5)]));
        assert!(counts("no").is_err());
    }
}
