//! Events that callgrind's model does not see, per thousand operations, at several numbers of threads: page faults, context switches, system
//! calls, futex calls, and atomic read-modify-writes.
//!
//! | counted | how |
//! |---|---|
//! | faults, context switches | by the kernel, in a run of the workload as it is |
//! | system calls, futex calls | `strace -f -c`, in a run of its own |
//! | atomic read-modify-writes | callgrind counts every instruction of the allocator's library and of the C library; `objdump` says which ones are atomic |
//!
//! Whole processes are counted, with their start and their end. The schedule differs from run to run, so these counts do too.

use crate::allocator::description::Allocator;
use crate::measure::counts;
use crate::measure::measurement::Measurement;
use crate::process::child::{self, End};
use crate::process::scratch_file::ScratchFile;
use crate::process::{command_file, command_run, interrupt, own_executable};
use crate::progress;
use crate::results::outcome::Outcome;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A workload with many threads: its name, what sets the number of threads, how many threads one of that is, and what limits it.
type Threaded = (&'static str, &'static str, u64, &'static [(&'static str, u64)]);

const WORKLOADS: [Threaded; 3] = [
    ("larson", "threads", 1, &[("ops", 200_000), ("slots", 500), ("rounds", 10)]),
    ("producer_consumer", "pairs", 2, &[("ops", 200_000)]),
    ("passive_false_sharing", "threads", 1, &[("ops", 200_000), ("writes", 10)]),
];

/// Numbers of threads.
const THREADS: [u64; 4] = [1, 2, 8, 64];

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// One workload at one number of threads.
struct Case {
    name: &'static str,
    threads: u64,
    operations: u64,
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
    let case = |&(name, parameter, each, limits): &Threaded, threads: u64| {
        let mut command = vec![executable.clone().into_os_string(), "workload".into(), name.into()];
        command.push(format!("{parameter}={}", threads / each).into());
        command.extend(limits.iter().map(|(key, value)| OsString::from(format!("{key}={value}"))));
        Case { name, threads, operations: limits[0].1, command }
    };
    let fits = |threaded: &&Threaded, threads: u64| threads >= threaded.2;
    Ok(THREADS
        .iter()
        .flat_map(|&threads| WORKLOADS.iter().filter(move |one| fits(one, threads)).map(move |one| case(one, threads)))
        .collect())
}

fn keep(case: &Case, allocator: &Allocator, events: &[(&str, u64)], measurement: &mut Measurement) -> Result<()> {
    for (what, count) in events {
        let subject = format!("{}, {} threads: {what}", case.name, case.threads);
        let value = *count as f64 * 1000.0 / case.operations as f64;
        let outcome = Outcome::Figure { name: "per 1000 operations".into(), value };
        measurement.keep(&subject, &allocator.name, 0, outcome)?;
    }
    Ok(())
}

fn events(case: &Case, allocator: &Allocator, tools: &mut Tools) -> Result<[(&'static str, u64); 5]> {
    let record = command_run::run_captured(&case.command, allocator.preload(), None, LIMIT, false)?.record;
    if record.exit != 0 {
        bail!("{}", record.ending());
    }
    let calls = system_calls(case, allocator)?;
    Ok([
        ("page faults", record.minor_faults),
        ("context switches", record.context_switches),
        ("system calls", calls.values().sum()),
        ("futex calls", calls.get("futex").copied().unwrap_or(0)),
        ("atomic read-modify-writes", executed_atomics(case, allocator, tools)?),
    ])
}

/// The system calls of one run, by name.
fn system_calls(case: &Case, allocator: &Allocator) -> Result<BTreeMap<String, u64>> {
    let table = ScratchFile::new("strace");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-o"]).arg(table.path());
    let preload = allocator.preload();
    preload.apply_environment(&mut command);
    if let Some(library) = preload.library {
        // Only the traced process gets it.
        command.arg("-E").arg(format!("LD_PRELOAD={}", library.display()));
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

/// How many atomic instructions the allocator's library and the C library execute in one run.
fn executed_atomics(case: &Case, allocator: &Allocator, tools: &mut Tools) -> Result<u64> {
    let profile = ScratchFile::new("callgrind");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--dump-instr=yes", "--dump-line=no"]);
    command.args(["--compress-strings=no", "--compress-pos=no"]);
    command.arg(format!("--callgrind-out-file={}", profile.path().display())).args(&case.command);
    counts::preload_beside_clock(allocator, tools.clock.as_deref(), &mut command);
    run(&mut command)?;
    let text = fs::read_to_string(profile.path()).context("callgrind wrote no profile")?;
    let library = allocator.library.as_deref().map(|path| path.display().to_string());
    let is_counted = |object: &str| library.as_deref() == Some(object) || object.contains("/libc.so");
    let mut executed = 0;
    for (object, address, count) in instructions(&text).filter(|(object, ..)| is_counted(object)) {
        if tools.atomics.of(object)?.contains(&address) {
            executed += count;
        }
    }
    Ok(executed)
}

/// The instructions of a profile of callgrind: object, address in it, how often it was executed.
fn instructions(profile: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    let (mut object, mut is_call) = ("", false);
    profile.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        }
        // The line behind `calls=` has what the called function took.
        let skipped = std::mem::replace(&mut is_call, line.starts_with("calls="));
        let (address, costs) = line.strip_prefix("0x").filter(|_| !skipped)?.split_once(' ')?;
        let count = costs.split(' ').next()?.parse().ok()?;
        Some((object, u64::from_str_radix(address, 16).ok()?, count))
    })
}

/// The addresses of atomic read-modify-writes, by object file.
#[derive(Default)]
struct AtomicInstructions(BTreeMap<String, BTreeSet<u64>>);

impl AtomicInstructions {
    fn of(&mut self, object: &str) -> Result<&BTreeSet<u64>> {
        if !self.0.contains_key(object) {
            let listing = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(Path::new(object)).output();
            let listing = listing.context("objdump could not be started")?.stdout;
            let found = String::from_utf8_lossy(&listing).lines().filter_map(atomic_address).collect();
            self.0.insert(object.to_owned(), found);
        }
        Ok(&self.0[object])
    }
}

/// The address of a line of `objdump`, if its instruction is an atomic read-modify-write: one with the prefix `lock`, or an exchange with memory.
fn atomic_address(line: &str) -> Option<u64> {
    let (address, instruction) = line.split_once(":\t")?;
    let is_atomic = instruction.starts_with("lock ") || (instruction.starts_with("xchg") && instruction.contains('('));
    is_atomic.then(|| u64::from_str_radix(address.trim(), 16).ok())?
}

fn run(command: &mut Command) -> Result<()> {
    let finished = child::run(command, LIMIT).context("it could not be started")?;
    match finished.end {
        End::Exited(status) if status.success() => Ok(()),
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
        for (name, parameter, _, limits) in WORKLOADS {
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

    #[test]
    fn executed_instructions_are_read_without_what_called_functions_took() {
        let profile = "ob=/lib/a.so\nfn=x\n0x10 3 1\ncfn=y\ncalls=1 0x99 \n0x12 500\n0x14 2\nob=/lib/b.so\n0xff 7\n";
        let read: Vec<_> = instructions(profile).collect();
        assert_eq!(read, [("/lib/a.so", 16, 3), ("/lib/a.so", 20, 2), ("/lib/b.so", 255, 7)]);
    }

    #[test]
    fn atomic_instructions_are_those_with_a_lock_and_exchanges_with_memory() {
        assert_eq!(atomic_address("   1a2b:\tlock cmpxchg %rcx,(%rdi)"), Some(0x1a2b));
        assert_eq!(atomic_address("   1a2c:\txchg   %rax,0x8(%rdi)"), Some(0x1a2c));
        assert_eq!(atomic_address("   1a2d:\txchg   %ax,%ax"), None);
        assert_eq!(atomic_address("   1a2e:\tmov    (%rdi),%rax"), None);
        assert_eq!(atomic_address("0000000000001a2f <clock>:"), None);
    }
}
