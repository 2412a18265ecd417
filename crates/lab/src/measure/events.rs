//! Events that callgrind's model does not see, per thousand operations, at several numbers of threads: page faults, context switches, system
//! calls, futex calls, atomic read-modify-writes, and acquisitions of each lock of Freestone's.
//!
//! | counted | how |
//! |---|---|
//! | faults, context switches | by the kernel, in a run of the workload as it is |
//! | system calls, futex calls | `strace -f -c`, in a run of its own |
//! | atomic read-modify-writes | callgrind counts every instruction of the allocator's library and of the C library; `objdump` says which ones are atomic |
//! | acquisitions of locks | the same, by the debugging information of the library |
//!
//! Whole processes are counted, with their start and their end. The schedule differs from run to run, so these counts do too.

use crate::allocator::description::Allocator;
use crate::measure::atomics::{AtomicInstructions, Executed};
use crate::measure::counts;
use crate::measure::measurement::Measurement;
use crate::process::child::{self, End};
use crate::process::command_run::{self, Surroundings};
use crate::process::{command_file, interrupt, own_executable};
use crate::progress;
use crate::results::outcome::Outcome;
use crate::scratch_file::ScratchFile;
use crate::workload::workload_record::WorkloadRecord;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A workload with many threads: what its counts are called, its name, what sets the number of threads, how many threads one of that is, and its other
/// parameters.
type Threaded = (&'static str, &'static str, &'static str, u64, &'static [(&'static str, u64)]);

const WORKLOADS: [Threaded; 5] = [
    ("larson", "larson", "threads", 1, &[("ops", 200_000), ("slots", 500), ("rounds", 10)]),
    ("larson of large blocks", "larson", "threads", 1, &LARGE),
    ("producer_consumer", "producer_consumer", "pairs", 2, &[("ops", 200_000)]),
    ("passive_false_sharing", "passive_false_sharing", "threads", 1, &[("ops", 200_000), ("writes", 10)]),
    ("burst_keep_every_20th", "burst_keep_every_20th", "threads", 1, &[("burst_mib", 32), ("wait_ms", 1)]),
];

/// Every block is a large one: what a large block takes is apart from what small ones take.
const LARGE: [(&str, u64); 5] = [("ops", 20_000), ("slots", 50), ("rounds", 10), ("min", 40_000), ("max", 200_000)];

/// Numbers of threads.
const THREADS: [u64; 4] = [1, 2, 8, 64];

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// One workload at one number of threads.
struct Case {
    name: &'static str,
    threads: u64,
    /// `freestone workload …`.
    command: Vec<OsString>,
}

/// What the runs of all cases need.
struct Tools {
    /// The counting clock, if it could be built.
    clock: Option<PathBuf>,
    atomics: AtomicInstructions,
}

/// Counts the events of every workload at every number of threads under every allocator.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn count_all(allocators: &[Allocator], measurement: &mut Measurement) -> Result<()> {
    let missing = ["valgrind", "strace", "objdump"].into_iter().filter(|name| command_file::find(name).is_err());
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        let packages = missing.join(" ").replace("objdump", "binutils");
        return measurement
            .leave_out([format!("no counts of events: install what is missing: apt install {packages}")]);
    }
    let cases = cases()?;
    let mut tools = Tools { clock: counts::clock().ok(), atomics: AtomicInstructions::default() };
    let bar = progress::bar((cases.len() * allocators.len()) as u64);
    for case in &cases {
        for allocator in allocators.iter().take_while(|_| !interrupt::asked()) {
            bar.set_message(format!("events of {} with {} threads under {}", case.name, case.threads, allocator.name));
            match events(case, allocator, &mut tools) {
                Ok(events) => keep(case, allocator, &events, measurement)?,
                Err(_) if interrupt::asked() => {}
                Err(error) => {
                    let what = format!("events of {} under {}: {error:#}", case.name, allocator.name);
                    measurement.leave_out([what])?;
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn cases() -> Result<Vec<Case>> {
    let executable = own_executable::path()?;
    let case = |&(name, workload, parameter, each, limits): &Threaded, threads: u64| {
        let mut command = vec![executable.clone().into_os_string(), "workload".into(), workload.into()];
        command.push(format!("{parameter}={}", threads / each).into());
        command.extend(limits.iter().map(|(key, value)| OsString::from(format!("{key}={value}"))));
        Case { name, threads, command }
    };
    let fits = |threaded: &&Threaded, threads: u64| threads >= threaded.3;
    Ok(THREADS
        .iter()
        .flat_map(|&threads| WORKLOADS.iter().filter(move |one| fits(one, threads)).map(move |one| case(one, threads)))
        .collect())
}

/// Counts of one kind.
struct Events {
    what: String,
    count: u64,
}

fn keep(
    case: &Case,
    allocator: &Allocator,
    (events, operations): &(Vec<Events>, u64),
    measurement: &mut Measurement,
) -> Result<()> {
    for Events { what, count } in events {
        let subject = format!("{}, {} threads: {what}", case.name, case.threads);
        let value = *count as f64 * 1000.0 / *operations as f64;
        let outcome = Outcome::Figure { name: "per 1000 operations".into(), value };
        measurement.keep(&subject, &allocator.name, 0, outcome)?;
    }
    Ok(())
}

/// The events of one case, and the operations that they are of.
fn events(case: &Case, allocator: &Allocator, tools: &mut Tools) -> Result<(Vec<Events>, u64)> {
    let surroundings = Surroundings { input: None, folder: None, limit: LIMIT };
    let record = command_run::run_captured(&case.command, allocator.preload(), surroundings, false)?.record;
    if record.exit != 0 {
        bail!("{}", record.ending());
    }
    let calls = system_calls(case, allocator)?;
    let (executed, operations) = executed_atomics(case, allocator, tools)?;
    let counted = [
        ("page faults", record.minor_faults),
        ("context switches", record.context_switches),
        ("system calls", calls.values().sum()),
        ("futex calls", calls.get("futex").copied().unwrap_or(0)),
        ("atomic read-modify-writes", executed.atomics),
    ];
    let counted = counted.into_iter().map(|(what, count)| Events { what: what.into(), count });
    let locks = executed.locks.iter().map(|(lock, &count)| Events { what: format!("lock of the {lock}"), count });
    Ok((counted.chain(locks).collect(), operations))
}

/// The system calls of one run, by name.
fn system_calls(case: &Case, allocator: &Allocator) -> Result<BTreeMap<String, u64>> {
    let table = ScratchFile::new("strace")?;
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-o"]).arg(table.path());
    let preload = allocator.preload();
    preload.apply_environment(&mut command);
    if let Some(library) = preload.library {
        // Only the traced process gets it.
        let mut variable = OsString::from("LD_PRELOAD=");
        variable.push(library);
        command.arg("-E").arg(variable);
    }
    run(command.args(&case.command))?;
    let text = fs::read_to_string(table.path()).context("strace wrote no table")?;
    Ok(text.lines().filter_map(calls_in_line).collect())
}

/// A line of strace's table: share, seconds, microseconds per call, calls, errors if there were any, name.
fn calls_in_line(line: &str) -> Option<(String, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [share, _, _, calls, .., name] = words.as_slice() else { return None };
    share.parse::<f64>().ok()?;
    (*name != "total").then_some(((*name).to_owned(), calls.parse().ok()?))
}

/// What is atomic of what one run executes, and how many operations the run had.
fn executed_atomics(case: &Case, allocator: &Allocator, tools: &mut Tools) -> Result<(Executed, u64)> {
    let profile = ScratchFile::new("callgrind")?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--dump-instr=yes", "--dump-line=no"]);
    command.args(["--compress-strings=no", "--compress-pos=no"]);
    command.arg(format!("--callgrind-out-file={}", profile.path().display())).args(&case.command);
    counts::preload_beside_clock(allocator, tools.clock.as_deref(), &mut command);
    let printed: WorkloadRecord = serde_json::from_slice(&run(&mut command)?).context("the workload's figures")?;
    let text = fs::read_to_string(profile.path()).context("callgrind wrote no profile")?;
    Ok((tools.atomics.executed(&text, allocator.library.as_deref())?, printed.operations))
}

/// Runs a command; returns what it printed.
fn run(command: &mut Command) -> Result<Vec<u8>> {
    let finished = child::run(command, LIMIT).context("it could not be started")?;
    match finished.end {
        End::Exited(status) if status.success() => Ok(finished.stdout),
        End::Exited(status) => bail!("{status}: {}", counts::own_lines(&String::from_utf8_lossy(&finished.stderr))),
        End::TimedOut => bail!("took longer than {} minutes", LIMIT.as_secs() / 60),
        End::Interrupted => bail!("interrupted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::catalogue;
    use crate::workload::params::{Params, Scale};

    #[test]
    fn every_workload_has_the_parameters_that_are_set() {
        for (_, name, parameter, _, limits) in WORKLOADS {
            let set: Vec<String> =
                limits.iter().map(|&(key, _)| key).chain([parameter]).map(|key| format!("{key}=1")).collect();
            Params::resolve(catalogue::find(name).unwrap().params, Scale::Normal, &set).unwrap();
        }
        let pairs: Vec<u64> =
            cases().unwrap().iter().filter(|case| case.name == "producer_consumer").map(|case| case.threads).collect();
        assert_eq!(pairs, [2, 8, 64], "a pair has two threads");
    }

    #[test]
    fn calls_are_read_with_and_without_errors_and_the_total_is_left_out() {
        let line = |text| calls_in_line(text);
        assert_eq!(line(" 55.00    0.000123           3        41           futex"), Some(("futex".into(), 41)));
        assert_eq!(line("  5.00    0.000001           0         7         2 openat"), Some(("openat".into(), 7)));
        assert_eq!(line("100.00    0.000124           2        48         2 total"), None);
        assert_eq!(line("% time     seconds  usecs/call     calls    errors syscall"), None);
    }
}
