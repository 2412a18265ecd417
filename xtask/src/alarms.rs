//! `cargo xtask alarms`: correct programs at each level of hardening. Whatever the library reports of them is a false alarm.

use crate::process::{cargo, run as run_command};
use crate::programs;
use anyhow::{Result, bail};

/// The levels, all of them when none is named.
const LEVELS: [&str; 4] = ["off", "default", "checks", "full"];

/// Test binaries of the C interface whose programs are correct and do not depend on the level.
const TESTS: [&str; 8] = ["conformance", "fork", "heaps", "life_cycle", "memory", "seams", "threads", "tlsf"];

/// Runs the C programs of the tests, and every real program that is installed, at these levels.
pub(crate) fn run(levels: &[String]) -> Result<()> {
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
    println!("== alarms: real programs");
    programs::run(&[], &levels, false)?;
    if !wrong.is_empty() {
        bail!("C programs failed at these levels: {}", wrong.join(", "));
    }
    Ok(())
}
