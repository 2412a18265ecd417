//! The lab tested on itself: builds one peer from source and measures it beside Freestone, and measures Freestone against itself, which must
//! show no difference. Takes less than a minute once everything is built.

use crate::process::{cargo, is_installed, root, run as run_command, target};
use anyhow::Result;
use std::process::Command;

/// The peer that is built: it has C sources like the others, and builds fastest.
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
        println!("skipped: no C compiler, so no peer is built: install gcc");
        beside = "system,freestone".into();
    }
    let workloads = ["bench", "random_mixed", "larson", "realloc_growth", "latency_tail"];
    freestone(&[&workloads[..], &["--quick", "--rounds", "2", "--allocator", &beside]].concat(), "peer.jsonl")?;
    let workloads = ["bench", "random_mixed", "string_churn", "producer_consumer", "realloc_growth"];
    let self_test = |results| {
        freestone(&[&workloads[..], &["--quick", "--self-test", "--allocator", "freestone"]].concat(), results)
    };
    // A machine whose load changes with the rounds lets a difference be claimed now and then; an error of the method does so each time.
    self_test("self-test.jsonl").or_else(|claimed| {
        println!("{claimed:#}\nmeasured once more, because what else runs here may have been the cause:");
        self_test("self-test-again.jsonl")
    })
}
