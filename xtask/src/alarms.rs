//! `cargo xtask alarms`: correct programs at each level of hardening. Whatever the library reports of them is a false alarm.

use crate::process::{build_library, cargo, command as command_in_root, run as run_command, target};
use crate::programs;
use anyhow::{Context, Result, bail};

/// The levels, all of them when none is named.
const LEVELS: [&str; 4] = ["off", "default", "checks", "full"];

/// Test binaries of the C interface whose programs are correct and do not depend on the level.
const TESTS: [&str; 8] = ["conformance", "fork", "heaps", "life_cycle", "memory", "seams", "threads", "tlsf"];

/// Runs the C programs of the tests, and every real program that is installed, at these levels; with `workloads`, also those of the lab.
pub(crate) fn run(levels: &[String], workloads: bool) -> Result<()> {
    let levels = if levels.is_empty() { LEVELS.map(str::to_owned).to_vec() } else { levels.to_vec() };
    let mut wrong = Vec::new();
    for level in &levels {
        println!("== alarms: C programs with harden={level}");
        let mut command = cargo(&["test", "--package", "freestone-capi", "--no-fail-fast"]);
        command.args(TESTS.iter().flat_map(|test| ["--test", test])).env("CAPI_TEST_HARDEN", level);
        if let Err(error) = run_command(&mut command) {
            println!("FAILED {error:#}");
            wrong.push(level.as_str());
        }
    }
    if workloads {
        run_workloads(&levels)?;
    }
    println!("== alarms: real programs");
    programs::run(&[], &levels, false)?;
    if !wrong.is_empty() {
        bail!("C programs failed at these levels: {}", wrong.join(", "));
    }
    Ok(())
}

/// 400 MiB live under a limit of 512 are refused at `checks` and `full`, where each block takes more: that is no alarm, so the limit is lifted.
const WITHOUT_LIMIT: [&str; 2] = ["--param", "shifting_sizes.limit_mib=0"];

/// Runs every workload of the lab: a run that the library aborts fails.
fn run_workloads(levels: &[String]) -> Result<()> {
    build_library()?;
    run_command(&mut cargo(&["build", "--release", "--package", "freestone-lab"]))?;
    let lab = target().join("release/freestone");
    for level in levels {
        println!("== alarms: workloads with harden={level}");
        let lab = lab.to_str().context("the target folder's name is text")?;
        let mut command = command_in_root(lab, &["bench", "--allocator", "freestone", "--rounds", "2", "--no-report"]);
        command.args(WITHOUT_LIMIT).arg("--out").arg(target().join("alarms.jsonl")).env("FREESTONE_HARDEN", level);
        let output = command.output().context("the lab cannot be started")?;
        // The lab goes on without a workload whose run failed.
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() || said.contains("ended with") {
            bail!("a workload failed with harden={level}:\n{said}");
        }
    }
    Ok(())
}
