//! Counts per operation that repeat exactly where times do not: instructions, references to data, and misses of a model of the caches, by
//! valgrind's callgrind.
//!
//! Only the measured section is counted, and only in workloads in which one thread does all the work; few operations are enough. The model has
//! caches of a fixed size, so the counts do not depend on the machine's.
//!
//! The processes get a clock that advances only when it is read (`crates/peers/counting-clock`). Under valgrind a program runs about fifty
//! times slower than the real clock, so work that an allocator does by the clock would be counted too often, and differently in every run.
//! The C library must not use `rep movsb` and `rep stosb`: callgrind counts an instruction for each byte of them, and so a single block of
//! 256 KiB that is copied, or need not be, as hundreds of thousands.
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
use crate::results::outcome::{CacheModel, Outcome};
use crate::results::warning::Warning;
use crate::workload::params::Params;
use crate::workload::workload_record::WorkloadRecord;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The workloads of one thread, each with the parameters that limit it.
const COUNTED: [(&str, &[&str]); 12] = [
    ("random_mixed", &["ops=100000"]),
    ("tiny_hot", &["ops=50000"]),
    ("alloc_free_pair", &["ops=50000"]),
    ("pool_calloc", &["rounds=20"]),
    ("web_server", &["calls=12800"]),
    ("binary_trees", &["depth=12"]),
    ("string_churn", &["ops=3000"]),
    ("vec_growth", &["ops=10000"]),
    ("hash_map", &["ops=20000"]),
    ("trace_python", &["ops=1", "touch=1"]),
    ("trace_sqlite", &["ops=1", "touch=1"]),
    ("trace_gcc", &["ops=1", "touch=1"]),
];

/// The caches of the model: 32 KiB each for instructions and data, and 1 MiB behind them, about what one of many threads gets of the last level.
pub(crate) const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];

/// The setting of the C library under which `memcpy` and `memset` use vector instructions for blocks of any size.
const WITHOUT_REP: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1000000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000000";

/// How long one counted run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The counts of one run.
#[derive(Clone, Copy)]
struct Count {
    instructions: u64,
    model: CacheModel,
    operations: u64,
}

/// The workloads that can be counted.
pub(crate) fn workloads() -> impl Iterator<Item = &'static str> {
    COUNTED.iter().map(|&(name, _)| name)
}

/// Counts every job that can be counted, under every allocator.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn count_all(jobs: &[Job], allocators: &[Allocator], measurement: &mut Measurement) -> Result<()> {
    if command_file::find("valgrind").is_err() {
        let what = "no counts: valgrind is not installed (apt install valgrind)".into();
        return measurement.warn(Warning::Missing { what });
    }
    let counted: Vec<(&Job, &[&str])> = jobs
        .iter()
        .filter_map(|job| Some((job, COUNTED.iter().find(|(name, _)| *name == job.workload.name)?.1)))
        .collect();
    let clock = match clock() {
        Ok(clock) => Some(clock),
        Err(error) => {
            let what = format!("counts are taken under the real clock, so they may vary: {error:#}");
            measurement.warn(Warning::Missing { what })?;
            None
        }
    };
    let bar = progress::bar((counted.len() * allocators.len()) as u64);
    for (job, amount) in counted {
        for allocator in allocators.iter().take_while(|_| !interrupt::asked()) {
            bar.set_message(format!("counting {} under {}", job.subject, allocator.name));
            let once = || count(job, amount, allocator, clock.as_deref());
            let both = thread::scope(|scope| {
                let other = scope.spawn(once);
                [once(), other.join().unwrap_or_else(|_| bail!("the thread that counts panicked"))]
            });
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
            let Count { instructions, model, operations } = first;
            // Counts belong to no round; the largest number keeps them apart from the rounds.
            let outcome = Outcome::Instructions { instructions, operations, model: Some(model) };
            measurement.keep(&subject, &allocator, usize::MAX, outcome)
        }
        [Err(error), _] | [_, Err(error)] => measurement.warn(Warning::Failed {
            subject: format!("counts of {subject}"),
            allocator,
            what: format!("{error:#}"),
        }),
    }
}

/// The library of the clock that advances only when it is read: built if the lab runs from a checkout, else the installed one.
pub(crate) fn clock() -> Result<PathBuf> {
    match Checkout::of_this_command() {
        Some(checkout) => Ok(checkout.build_beside("counting-clock")?.join("libcounting_clock.so")),
        None => installation::counting_clock().context("the counting clock is not installed: install freestone whole"),
    }
}

/// Counts one run of `job` with the parameters `amount`, under `allocator` and, if there is one, the counting clock.
fn count(job: &Job, amount: &[&str], allocator: &Allocator, clock: Option<&Path>) -> Result<Count> {
    debug_assert!(
        Params::resolve(job.workload.params, job.scale, &amount.iter().map(|&one| one.to_owned()).collect::<Vec<_>>())
            .is_ok()
    );
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .args(CACHES)
        .arg("--toggle-collect=*freestone_measured_section*")
        .arg(own_executable::path()?)
        .args(["workload", job.workload.name])
        .args(amount)
        // The user's parameters come last and override the amount.
        .args(&job.params);
    preload_beside_clock(allocator, clock, &mut command);
    command.env("GLIBC_TUNABLES", WITHOUT_REP);
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
    let (instructions, model) = collected(&messages).context("callgrind printed no counts")?;
    Ok(Count { instructions, model, operations: record.operations })
}

/// Preloads `allocator` into `command`, behind the counting clock if there is one.
pub(crate) fn preload_beside_clock(allocator: &Allocator, clock: Option<&Path>, command: &mut Command) {
    allocator.preload().apply(command);
    let preload: Vec<&OsStr> = clock.into_iter().chain(allocator.library.as_deref()).map(Path::as_os_str).collect();
    command.env("LD_PRELOAD", preload.join(OsStr::new(":")));
}

/// The numbers in callgrind's line `==1234== Collected : …`: instructions, data read and written, then misses of the first level (instructions,
/// reads, writes) and of the last. Callgrind leaves out what is 0 at the end.
fn collected(messages: &str) -> Option<(u64, CacheModel)> {
    let line = messages.lines().find_map(|line| line.split_once("Collected :"))?.1;
    let mut numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.resize(9, 0);
    let [instructions, reads, writes, first @ .., a, b, c] = numbers.as_slice() else { return None };
    let model = CacheModel {
        data_references: reads + writes,
        first_level_misses: first.iter().sum(),
        last_level_misses: a + b + c,
    };
    (*instructions > 0).then_some((*instructions, model))
}

/// The lines of the program itself, without valgrind's.
pub(crate) fn own_lines(messages: &str) -> String {
    let own: Vec<&str> = messages
        .lines()
        .filter(|line| !line.starts_with("==") && !line.starts_with("--") && !line.trim().is_empty())
        .collect();
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
            Params::resolve(
                workload.params,
                Scale::Normal,
                &amount.iter().map(|&one| one.to_owned()).collect::<Vec<_>>(),
            )
            .unwrap();
        }
    }

    #[test]
    fn the_count_is_read_and_the_programs_lines_are_separated_from_valgrinds() {
        let messages =
            "==7== Callgrind\n--7-- warning: L3\nworkload: broken\n\n==7== Collected : 900 30 20 1 2 3 4 5 6\n";
        let (instructions, model) = collected(messages).unwrap();
        assert_eq!((instructions, model.data_references), (900, 50));
        assert_eq!((model.first_level_misses, model.last_level_misses), (6, 15));
        assert_eq!(own_lines(messages), "workload: broken");
        assert!(collected("==7== nothing").is_none() && collected("==7== Collected : 0").is_none());
        let (_, model) = collected("==7== Collected : 900 30 20 21 9 3 20\n").unwrap();
        assert_eq!(
            (model.first_level_misses, model.last_level_misses),
            (33, 20),
            "the last level has no misses of data"
        );
    }
}
