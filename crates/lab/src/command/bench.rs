//! `freestone bench`: the built-in workloads under every allocator at hand, in interleaved rounds.
//!
//! Workloads run one after the other, each in rounds; within a round every allocator runs once, in a random order, so that changes of the
//! machine over time favour none. Before the rounds, each allocator proves that it answers `malloc`. With `--programs`, real programs run in place
//! of the workloads.

mod named;
mod programs;
mod self_test;

use crate::allocator::selection;
use crate::command::conclusion::Output;
use crate::measure::rounds::{self, Contender, Job};
use crate::measure::{counts, events};
use crate::process::command_file;
use crate::show::{count_tables, summary_tables, workload_list};
use crate::suggestion;
use crate::workload::catalogue;
use crate::workload::definition::Workload;
use crate::workload::params::{Params, Scale};
use crate::workload::programs as installed_programs;
use anyhow::{Context, Result, bail};
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// The options of `freestone bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Workloads (with --programs: programs) to run; all of them when none is named (with --quick, a dozen workloads)
    workloads: Vec<String>,
    /// Allocators, comma-separated or repeated: NAME (system, freestone, or one of `freestone peers list`), or NAME=PATH.so, and then :OPTION=VALUE for each option; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds [default: 9; with --quick 8, with --full 15]
    #[arg(short, long)]
    rounds: Option<NonZeroUsize>,
    /// Short runs of a dozen workloads: one minute for two allocators, three minutes for all peers
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Real programs (compilers, interpreters, servers) in place of the built-in workloads; --list shows them and how to install what is missing
    #[arg(long, conflicts_with_all = ["params", "count"])]
    programs: bool,
    /// Long runs and many rounds, for figures that are to be published
    #[arg(long)]
    full: bool,
    /// A parameter of a workload
    #[arg(short, long = "param", value_name = "WORKLOAD.NAME=VALUE")]
    params: Vec<String>,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "60")]
    timeout: NonZeroU64,
    /// Count in place of timing: instructions and cache misses under valgrind's callgrind; without names of workloads also faults, system calls and
    /// atomic operations at 1 to 64 threads. How much work is counted, and how long it may take, is fixed
    #[arg(long, conflicts_with_all = ["self_test", "rounds", "quick", "full", "timeout"])]
    count: bool,
    /// Measure the first allocator against itself, and fail if any difference is claimed
    #[arg(long)]
    self_test: bool,
    #[command(flatten)]
    output: Output,
    /// List the workloads and their parameters, or the programs
    #[arg(short, long, conflicts_with = "json")]
    list: bool,
}

/// Workloads of a quick run: one of each kind.
const QUICK: [&str; 12] = [
    "random_mixed",
    "tiny_hot",
    "web_server",
    "string_churn",
    "hash_map",
    "larson",
    "producer_consumer",
    "large_churn",
    "realloc_growth",
    "fragmentation_phases",
    "latency_tail",
    "startup",
];

impl Options {
    fn scale(&self) -> Scale {
        match (self.quick, self.full) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Full,
            _ => Scale::Normal,
        }
    }

    fn rounds(&self) -> usize {
        self.rounds.map(NonZeroUsize::get).unwrap_or(match self.scale() {
            Scale::Quick => 8,
            Scale::Normal => 9,
            Scale::Full => 15,
        })
    }

    fn selected(&self) -> Result<Vec<&'static Workload>> {
        if self.workloads.is_empty() {
            let quick = |workload: &&&Workload| !self.quick || QUICK.contains(&workload.name);
            return Ok(catalogue::ALL.iter().filter(quick).copied().collect());
        }
        let known = || catalogue::ALL.iter().map(|workload| workload.name);
        named::once(&self.workloads)
            .map(|name| catalogue::find(name).with_context(|| suggestion::unknown("workload", name, known())))
            .collect()
    }

    /// The parameters that were given for `workload`; checked.
    fn params_of(&self, workload: &'static Workload) -> Result<Vec<String>> {
        let prefix = format!("{}.", workload.name);
        let own: Vec<String> =
            self.params.iter().filter_map(|param| param.strip_prefix(&prefix)).map(str::to_owned).collect();
        Params::resolve(workload.params, self.scale(), &own).with_context(|| format!("workload {}", workload.name))?;
        Ok(own)
    }
}

/// Runs the command; returns the exit status.
///
/// # Errors
/// A name does not exist, nothing can be measured, or results cannot be written.
pub(crate) fn main(options: &Options) -> Result<u8> {
    if options.programs {
        return if options.list {
            programs::list(&options.workloads).map(|()| 0)
        } else {
            programs::main(&request(options))
        };
    }
    if options.list {
        workload_list::print();
        return Ok(0);
    }
    let (jobs, not_installed) = installed(jobs(options)?);
    let (jobs, uncounted) = if options.count { countable(jobs) } else { (jobs, Vec::new()) };
    let mut selection = selection::select(&options.allocators)?;
    if options.self_test {
        selection.allocators = self_test::first_twice(selection.allocators);
    }
    let mut measurement = options.output.begin("bench", &selection.allocators)?;
    measurement.leave_out(selection.missing.into_iter().chain(not_installed).chain(uncounted))?;
    let allocators = measurement.prove(&selection.allocators)?;
    let baseline = measurement.baseline(&allocators, "no allocator could be measured; the warnings above say why")?;
    if options.count {
        counts::count_all(&jobs, &allocators, &mut measurement)?;
        if options.workloads.is_empty() {
            events::count_all(&allocators, &mut measurement)?;
        }
    } else {
        rounds::measure_all(&jobs, &Contender::plain(&allocators), options.rounds(), &mut measurement)?;
    }
    let summary = measurement.finish(&baseline)?;
    measurement.refuse_emptiness(&summary)?;
    let print = if options.count { count_tables::print } else { summary_tables::print };
    options.output.conclude(&measurement, &summary, || print(&summary))?;
    Ok(if options.self_test { self_test::judge(&summary) } else { 0 })
}

/// The jobs that can be counted, and a sentence about each of the others that was named.
fn countable(jobs: Vec<Job>) -> (Vec<Job>, Vec<String>) {
    let all = jobs.len() == catalogue::ALL.len();
    let (counted, others): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| counts::workloads().any(|name| name == job.workload.name));
    let sentence = |job: Job| format!("{} is left out: it cannot be counted in one thread's section", job.subject);
    (counted, others.into_iter().filter(|_| !all).map(sentence).collect())
}

/// What `options` ask of the suite of programs.
fn request(options: &Options) -> programs::Request<'_> {
    programs::Request {
        names: &options.workloads,
        allocators: &options.allocators,
        rounds: options.rounds(),
        limit: Duration::from_secs(options.timeout.get()),
        self_test: options.self_test,
        output: &options.output,
    }
}

/// The jobs whose programs are installed, and a sentence about each of the others.
fn installed(jobs: Vec<Job>) -> (Vec<Job>, Vec<String>) {
    let mut absent = Vec::new();
    let is_there = |job: &Job| {
        let Some((program, package)) = installed_programs::needs(job.workload.name) else { return true };
        let found = command_file::find(program).is_ok();
        if !found {
            absent.push(format!("{} is left out: {program} is not installed (apt install {package})", job.subject));
        }
        found
    };
    (jobs.into_iter().filter(is_there).collect(), absent)
}

/// The jobs that `options` name.
fn jobs(options: &Options) -> Result<Vec<Job>> {
    let selected = options.selected()?;
    for param in &options.params {
        let named = |workload: &&'static Workload| param.starts_with(&format!("{}.", workload.name));
        if !selected.iter().any(named) {
            bail!("--param {param}: write it as WORKLOAD.NAME=VALUE, with a workload that is run");
        }
    }
    selected
        .into_iter()
        .map(|workload| {
            Ok(Job {
                workload,
                params: options.params_of(workload)?,
                scale: options.scale(),
                limit: Duration::from_secs(options.timeout.get()),
                subject: workload.name.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(arguments: &[&str]) -> Options {
        Line::parse_from([&["bench"], arguments].concat()).options
    }

    #[test]
    fn the_workloads_of_a_quick_run_exist_and_only_they_run() {
        assert!(QUICK.iter().all(|name| catalogue::find(name).is_some()));
        assert_eq!(options(&["--quick"]).selected().unwrap().len(), QUICK.len());
        assert_eq!(options(&[]).selected().unwrap().len(), catalogue::ALL.len());
        assert_eq!(options(&["--quick", "larson"]).selected().unwrap().len(), 1);
        assert_eq!(options(&["larson", "tiny_hot", "larson"]).selected().unwrap().len(), 2, "each once");
    }

    #[test]
    fn a_list_is_no_summary_that_could_be_json() {
        assert!(Line::try_parse_from(["bench", "--list", "--json"]).is_err());
        assert!(options(&["--list"]).list);
    }

    #[test]
    fn what_counts_do_not_heed_is_refused_beside_them() {
        for ignored in [&["--rounds", "3"][..], &["--quick"], &["--full"], &["--timeout", "5"]] {
            assert!(Line::try_parse_from([&["bench", "--count"], ignored].concat()).is_err(), "{ignored:?}");
        }
        assert!(options(&["--count"]).count);
    }

    #[test]
    fn rounds_follow_the_scale_unless_they_are_given() {
        let rounds = |arguments: &[&str]| options(arguments).rounds();
        assert_eq!([rounds(&[]), rounds(&["--quick"]), rounds(&["--full"])], [9, 8, 15]);
        assert_eq!(rounds(&["--full", "-r", "3"]), 3);
    }

    #[test]
    fn a_parameter_goes_to_its_workload_alone_and_must_exist() {
        let jobs = jobs(&options(&["tiny_hot", "larson", "-p", "tiny_hot.ops=5"])).unwrap();
        assert_eq!((jobs[0].params.as_slice(), jobs[1].params.len()), (&["ops=5".to_owned()][..], 0));
        let refused = |param| super::jobs(&options(&["tiny_hot", "-p", param])).is_err();
        assert!(refused("tiny_hot.opps=5") && refused("larson.ops=5") && refused("ops=5"));
    }

    #[test]
    fn a_workload_without_operations_or_threads_is_refused_unless_its_list_says_what_that_means() {
        let accepted = |workload, param| super::jobs(&options(&[workload, "-p", param])).is_ok();
        assert!(!accepted("tiny_hot", "tiny_hot.ops=0") && !accepted("larson", "larson.threads=0"));
        assert!(accepted("burst_keep_every_20th", "burst_keep_every_20th.threads=0"));
    }
}
