//! Instructions per operation, counted by valgrind's callgrind: a figure that repeats exactly where times do not.
//!
//! Only the measured section is counted, and only in workloads in which one thread does all the work; few operations are enough.
//!
//! The processes get a clock that advances only when it is read (`crates/peers/counting-clock`). Under valgrind a program runs about fifty
//! times slower than the real clock, so work that an allocator does by the clock would be counted too often, and differently in every run.
//! Every run is counted twice. Where the two counts differ (an allocator may read the processor's time-stamp counter), the first one is
//! kept and a warning gives both.

use crate::allocator::checkout::Checkout;
use crate::allocator::description::Allocator;
use crate::allocator::installation;
use crate::measure::measurement::Measurement;
use crate::measure::rounds::Job;
use crate::process::child::{self, End};
use crate::process::{command_file, interrupt, own_executable};
use crate::progress;
use crate::results::outcome::Outcome;
use crate::results::warning::Warning;
use crate::workload::params::Params;
use crate::workload::workload_record::WorkloadRecord;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The workloads of one thread, each with the parameter that limits it and the value to count with.
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

/// How long one counted run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The instructions and operations of one run.
#[derive(Clone, Copy)]
struct Count {
    instructions: u64,
    operations: u64,
}

/// Counts every job that can be counted, under every allocator.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn count_all(jobs: &[Job], allocators: &[Allocator], measurement: &mut Measurement) -> Result<()> {
    if command_file::find("valgrind").is_err() {
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
            let what = format!("instructions are counted under the real clock, so counts may vary: {error:#}");
            measurement.warn(Warning::Missing { what })?;
            None
        }
    };
    let bar = progress::bar((counted.len() * allocators.len()) as u64);
    for (job, amount) in counted {
        for allocator in allocators.iter().take_while(|_| !interrupt::asked()) {
            bar.set_message(format!("instructions of {} under {}", job.subject, allocator.name));
            let both = [(); 2].map(|()| count(job, amount, allocator, clock.as_deref()));
            if !interrupt::asked() {
                keep(job, allocator, both, measurement)?;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Records the first of two counts, and warns if they differ or one failed.
fn keep(job: &Job, allocator: &Allocator, both: [Result<Count>; 2], measurement: &mut Measurement) -> Result<()> {
    let (subject, allocator) = (job.subject.clone(), allocator.name.clone());
    match both {
        [Ok(first), Ok(second)] => {
            let counts = [first.instructions, second.instructions];
            if counts[0] != counts[1] {
                let (subject, allocator) = (subject.clone(), allocator.clone());
                measurement.warn(Warning::CountsVary { subject, allocator, counts })?;
            }
            let Count { instructions, operations } = first;
            // Counts belong to no round; the largest number keeps them apart from the rounds.
            measurement.keep(&subject, &allocator, usize::MAX, Outcome::Instructions { instructions, operations })
        }
        [Err(error), _] | [_, Err(error)] => measurement.warn(Warning::Failed {
            subject: format!("instructions of {subject}"),
            allocator,
            what: format!("{error:#}"),
        }),
    }
}

/// The library of the clock that advances only when it is read: built if the lab runs from a checkout, else the installed one.
fn clock() -> Result<PathBuf> {
    match Checkout::of_this_command() {
        Some(checkout) => Ok(checkout.build_beside("counting-clock")?.join("libcounting_clock.so")),
        None => installation::counting_clock().context("the counting clock is not installed: install freestone whole"),
    }
}

/// Counts one run of `job` with the parameter `amount`, under `allocator` and, if there is one, the counting clock.
fn count(job: &Job, amount: &str, allocator: &Allocator, clock: Option<&Path>) -> Result<Count> {
    debug_assert!(Params::resolve(job.workload.params, job.scale, &[amount.to_owned()]).is_ok());
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*freestone_measured_section*")
        .arg(own_executable::path()?)
        .args(["workload", job.workload.name, amount])
        // The user's parameters come last and override the amount.
        .args(&job.params);
    allocator.preload().apply(&mut command);
    let preload: Vec<String> =
        clock.into_iter().chain(allocator.library.as_deref()).map(|path| path.display().to_string()).collect();
    command.env("LD_PRELOAD", preload.join(":"));
    let finished = child::run(&mut command, LIMIT).context("valgrind could not be started")?;
    let messages = String::from_utf8_lossy(&finished.stderr);
    match finished.end {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => bail!("ended with {status} under valgrind: {}", own_lines(&messages)),
        End::TimedOut => bail!("took longer than {} minutes under valgrind", LIMIT.as_secs() / 60),
        End::Interrupted => bail!("interrupted"),
    }
    let record: WorkloadRecord =
        serde_json::from_slice(&finished.stdout).context("the workload printed no record under valgrind")?;
    let instructions = collected(&messages).context("callgrind printed no count")?;
    Ok(Count { instructions, operations: record.operations })
}

/// The number in callgrind's line `==1234== Collected : 5678`.
fn collected(messages: &str) -> Option<u64> {
    messages.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok()
}

/// The lines of the program itself, without valgrind's.
fn own_lines(messages: &str) -> String {
    let own: Vec<&str> = messages.lines().filter(|line| !line.starts_with("==") && !line.trim().is_empty()).collect();
    own.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::catalogue;
    use crate::workload::params::Scale;

    #[test]
    fn every_counted_workload_has_the_parameter_that_limits_it() {
        for (name, amount) in COUNTED {
            let workload = catalogue::find(name).unwrap();
            Params::resolve(workload.params, Scale::Normal, &[amount.to_owned()]).unwrap();
        }
    }

    #[test]
    fn the_count_is_read_and_the_programs_lines_are_separated_from_valgrinds() {
        let messages = "==7== Callgrind\nworkload: broken\n\n==7== Collected : 123456\n";
        assert_eq!(collected(messages), Some(123_456));
        assert_eq!(own_lines(messages), "workload: broken");
        assert_eq!(collected("==7== nothing"), None);
    }
}
