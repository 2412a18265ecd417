//! The lab on itself: one peer built from its source and measured beside Freestone, and Freestone measured against itself, which must show no
//! difference. Short: under a minute once everything is built.

use crate::process::{cargo, is_installed, root, run as run_command, target};
use anyhow::Result;
use std::process::Command;

/// One peer stands for all: it has C sources, as they do, and builds soonest.
const PEER: &str = "mimalloc";

fn freestone(arguments: &[&str], results: &str) -> Result<()> {
    let mut command = Command::new(target().join("release/freestone"));
    command.args(arguments).arg("--out").arg(target().join("lab-check").join(results)).current_dir(root());
    run_command(&mut command)
}

/// Builds the peer and runs both measurements.
pub(crate) fn check() -> Result<()> {
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-lab"]))?;
    let mut beside = format!("system,freestone,{PEER}");
    if is_installed("cc") {
        run_command(
            Command::new(target().join("release/freestone")).args(["peers", "build", PEER]).current_dir(root()),
        )?;
    } else {
        println!("skipped: no C compiler, so no peer is built; install gcc");
        beside = "system,freestone".into();
    }
    let workloads = ["bench", "random_mixed", "larson", "realloc_growth", "latency_tail"];
    freestone(&[&workloads[..], &["--quick", "--rounds", "2", "--allocator", &beside]].concat(), "peer.jsonl")?;
    let workloads = ["bench", "random_mixed", "string_churn", "producer_consumer", "realloc_growth"];
    freestone(&[&workloads[..], &["--quick", "--self-test", "--allocator", "freestone"]].concat(), "self-test.jsonl")
}
