//! The instructions of workloads under Freestone, counted by the lab with callgrind, and compared with `counts.golden`.
//!
//! A count is that of a whole measured section, per operation, loop included. The compiler arranges the loop differently from one place of the sources
//! to another, by as much as 2 %; how much more or less a workload takes than under the system's allocator does not depend on it. The system's
//! count in turn varies by 0.3 % with the environment and the length of paths, which move glibc's heap. More of the allocator's own instructions
//! move both the count and the difference, so a workload fails if both have moved.

use crate::process::{build_library, cargo, is_installed, output, root, run as run_command, target};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// The count, or the difference from the system's, is that of the golden file up to this part of the count: 0.5 %.
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
    lab.args(["bench", "--count", "--json", "--no-report", "--allocator", "freestone,system", "--out"]).arg(results);
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

/// Instructions per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    under_freestone: f64,
    under_system: f64,
}

impl Counted {
    /// What does not depend on the loop.
    fn difference(self) -> f64 {
        self.under_freestone - self.under_system
    }
}

/// The counts by workload, in the JSON of `freestone bench --count`.
fn counts(json: &str) -> Result<BTreeMap<String, Counted>> {
    let summary: serde_json::Value = serde_json::from_str(json).context("the lab printed no JSON")?;
    let cells = summary["cells"].as_array().context("the lab's JSON has no cells")?;
    let under = |allocator| -> BTreeMap<&str, f64> {
        cells
            .iter()
            .filter(|cell| cell["allocator"] == allocator && cell["figure"] == "instructions")
            .filter_map(|cell| Some((cell["subject"].as_str()?, cell["cell"]["median"].as_f64()?)))
            .collect()
    };
    let system = under("system");
    let counted = |(workload, count): (&str, f64)| {
        Some((workload.to_owned(), Counted { under_freestone: count, under_system: *system.get(workload)? }))
    };
    Ok(under("freestone").into_iter().filter_map(counted).collect())
}

fn text(counts: &BTreeMap<String, Counted>) -> String {
    let mut text = String::from(
        "# Instructions per operation under Freestone, and how many more than under the system's allocator: `cargo xtask count --bless` writes this file.\n",
    );
    for (workload, counted) in counts {
        let _ = writeln!(text, "{workload} {:.2} {:+.2}", counted.under_freestone, counted.difference());
    }
    text
}

fn differences(counts: &BTreeMap<String, Counted>, golden: &str) -> Vec<String> {
    let parse = |line| {
        let [name, count, difference] = <[&str; 3]>::try_from(str::split(line, ' ').collect::<Vec<_>>()).ok()?;
        Some((name, [count.parse::<f64>().ok()?, difference.parse::<f64>().ok()?]))
    };
    let held: BTreeMap<&str, [f64; 2]> = golden.lines().filter_map(parse).collect();
    let complaint = |(workload, counted): (&String, &Counted)| {
        let Some([count, difference]) = held.get(workload.as_str()) else {
            return Some(format!("{workload} is not in counts.golden: {counted:?}"));
        };
        let moved = |now: f64, golden: f64| (now - golden).abs() > TOLERANCE * count;
        (moved(counted.under_freestone, *count) && moved(counted.difference(), *difference)).then(|| {
            format!(
                "{workload}: {:.2} instructions per operation, {:+.2} beside the system's allocator; in counts.golden {count:.2}, {difference:+.2}",
                counted.under_freestone,
                counted.difference()
            )
        })
    };
    counts.iter().filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_loop_or_only_the_system_takes_more_passes_and_more_of_freestones_own_is_named() {
        let counts = |of_a: f64, of_loop: f64, of_system: f64| {
            let a = Counted { under_freestone: of_a + of_loop, under_system: of_system + of_loop };
            BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), Counted { under_freestone: 7.0, under_system: 9.0 })])
        };
        let golden = text(&counts(1000.0, 0.0, 500.0));
        for (of_a, of_loop, of_system, n) in [
            (1004.9, 0.0, 500.0, 0),
            (995.1, 100.0, 500.0, 0),
            (1004.9, 0.0, 510.0, 0),
            (1006.0, 0.0, 500.0, 1),
            (994.0, 0.0, 500.0, 1),
            (1006.0, 20.0, 500.0, 1),
            (1006.0, 0.0, 500.5, 1),
        ] {
            let wrong = differences(&counts(of_a, of_loop, of_system), &golden);
            assert_eq!(wrong.len(), n, "{of_a} {of_loop} {of_system}: {wrong:?}");
        }
        assert!(differences(&counts(1000.0, 0.0, 500.0), "a 1000 +500\n")[0].starts_with("b is not in counts.golden"));
    }

    #[test]
    fn only_instructions_are_read_from_the_labs_json() {
        let cell = |allocator, figure, n| serde_json::json!({"subject": "a", "allocator": allocator, "figure": figure, "cell": {"median": n}});
        let cells = [
            cell("freestone", "instructions", 5.5),
            cell("freestone", "last_level_misses", 1.0),
            cell("system", "instructions", 7.0),
        ];
        let json = serde_json::json!({ "cells": cells }).to_string();
        let expected = Counted { under_freestone: 5.5, under_system: 7.0 };
        assert_eq!(counts(&json).unwrap(), BTreeMap::from([("a".to_owned(), expected)]));
        assert!(counts("no").is_err());
    }
}
