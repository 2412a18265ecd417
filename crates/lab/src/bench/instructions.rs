//! Instructions in one operation, counted by valgrind's callgrind: a figure that repeats exactly where times do not.
//!
//! Only the measured section is counted, and only in workloads whose work one thread does alone; a small number of operations is enough.
//!
//! The processes have a clock that goes on only when it is read (`crates/peers/counting-clock`): under valgrind a program is fifty times slower than
//! the clock, and what an allocator does by the clock would be counted too often and never twice the same. Every count is taken twice; where the
//! two differ (an allocator that reads the processor's own counter), the result is kept and the difference told.

use super::{Job, prepare};
use crate::allocator::Allocator;
use crate::child::{self, End};
use crate::measure::Measurement;
use crate::results::Outcome;
use crate::warning::Warning;
use crate::workload::params::Params;
use crate::{checkout, executable, interrupt, progress};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Workloads of one thread, with the parameter that says how much they do and the value to count with.
const COUNTED: [(&str, &str); 8] = [
    ("random_mixed", "ops=200000"),
    ("tiny_hot", "ops=200000"),
    ("alloc_free_pair", "ops=200000"),
    ("pool_calloc", "rounds=50"),
    ("web_server", "calls=25600"),
    ("binary_trees", "depth=12"),
    ("string_churn", "ops=10000"),
    ("vec_growth", "ops=10000"),
];

/// Counts every job that can be counted under every allocator.
///
/// # Errors
/// Results cannot be written.
pub(super) fn count_all(jobs: &[Job], allocators: &[Allocator], measurement: &mut Measurement) -> Result<()> {
    if executable::find_command("valgrind").is_err() {
        let what = "no instruction counts: valgrind is not installed (apt install valgrind)".into();
        return measurement.warn(Warning::Missing { what });
    }
    let counted: Vec<(&Job, &str)> = jobs
        .iter()
        .filter_map(|job| Some((job, COUNTED.iter().find(|(name, _)| *name == job.workload.name)?.1)))
        .collect();
    let clock = match clock() {
        Ok(clock) => Some(clock),
        Err(error) => {
            let what = format!("instructions are counted with the clock going on, so counts may vary: {error:#}");
            measurement.warn(Warning::Missing { what })?;
            None
        }
    };
    let bar = progress::bar((counted.len() * allocators.len()) as u64);
    for (job, amount) in counted {
        for allocator in allocators.iter().take_while(|_| !interrupt::asked()) {
            bar.set_message(format!("instructions of {} under {}", job.subject, allocator.name));
            let twice = [(); 2].map(|()| count(job, amount, allocator, clock.as_deref()));
            let subject = || format!("instructions of {}", job.subject);
            match twice {
                _ if interrupt::asked() => {}
                [Ok(first), Ok(second)] => {
                    if first.0 != second.0 {
                        measurement.warn(Warning::CountsVary {
                            subject: job.subject.clone(),
                            allocator: allocator.name.clone(),
                            counts: [first.0, second.0],
                        })?;
                    }
                    let outcome = Outcome::Instructions { instructions: first.0, operations: first.1 };
                    measurement.keep(&job.subject, &allocator.name, usize::MAX, outcome)?;
                }
                [Err(error), _] | [_, Err(error)] => measurement.warn(Warning::Failed {
                    subject: subject(),
                    allocator: allocator.name.clone(),
                    what: format!("{error:#}"),
                })?,
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// The library of the clock that is only moved by being read, built if need be.
fn clock() -> Result<PathBuf> {
    let target = checkout::target_folder()?;
    let library = target.join("peers/release/libcounting_clock.so");
    if !library.is_file() {
        let root = checkout::root().context("the counting clock is built from freestone's checkout, which is gone")?;
        let log = target.join("logs/counting-clock.log");
        checkout::cargo_build(&root.join("crates/peers"), "counting-clock", &target.join("peers"), &log)?;
    }
    Ok(library)
}

/// Instructions and operations of one run.
fn count(job: &Job, amount: &str, allocator: &Allocator, clock: Option<&Path>) -> Result<(u64, u64)> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*freestone_measured_section*")
        .arg(checkout::own_executable()?)
        .args(["workload", job.workload.name, amount])
        // What the user asked for counts more.
        .args(&job.params);
    prepare(&mut command, allocator);
    let preload: Vec<String> =
        clock.into_iter().chain(allocator.library.as_deref()).map(|path| path.display().to_string()).collect();
    command.env("LD_PRELOAD", preload.join(":"));
    let finished = child::run(&mut command, Duration::from_secs(300)).context("valgrind could not be started")?;
    let said = String::from_utf8_lossy(&finished.stderr);
    match finished.end {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => bail!("ended with {status} under valgrind: {}", own_words(&said)),
        End::TimedOut => bail!("took longer than 5 minutes under valgrind"),
        End::Interrupted => bail!("interrupted"),
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected :")).map(|(_, number)| number.trim());
    let instructions = collected.and_then(|text| text.parse().ok()).context("callgrind printed no count")?;
    let record: crate::record::WorkloadRecord =
        serde_json::from_slice(&finished.stdout).context("the workload printed no record under valgrind")?;
    debug_assert!(Params::resolve(job.workload.params, job.scale, &[amount.to_owned()]).is_ok());
    Ok((instructions, record.operations))
}

/// What the program said between valgrind's lines.
fn own_words(said: &str) -> String {
    let own: Vec<&str> = said.lines().filter(|line| !line.starts_with("==") && !line.trim().is_empty()).collect();
    own.join(" | ")
}
