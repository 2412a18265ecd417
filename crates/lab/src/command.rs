//! The command line: one file per subcommand.

mod bench;
mod compare;
mod completions;
mod conclusion;
mod experiment;
mod leaks;
mod manual;
mod options;
mod peers;
mod profile;
mod record;
mod replay;
mod report;
mod run;
mod top;
mod trace;

use crate::printing;
use crate::process::command_file::Refusal;
use crate::process::{child, interrupt};
use anyhow::{Error, Result};
use clap::{CommandFactory, Parser, Subcommand};

/// Exit status of every error except those for which shells have a status of their own.
const FAILURE: u8 = 2;

/// Exit status when something took longer than `--timeout` and was killed: that of `timeout`. What else was measured is kept.
const TIMED_OUT: u8 = 124;

/// Your program under every allocator, measured.
#[derive(Parser)]
#[command(name = "freestone", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a command under Freestone and summarise its memory; without a command, the built-in demo
    Run(run::Options),
    /// Run a command under every allocator at hand, in interleaved rounds
    Compare(compare::Options),
    /// Run the built-in workloads under every allocator at hand
    Bench(bench::Options),
    /// Repeat a published experiment and show the published figures beside the measured ones
    Experiment(experiment::Options),
    /// Make one HTML page from result files
    Report(report::Options),
    /// Show the memory of a running process live: by part, size class and thread
    Top(top::Options),
    /// Run a command with the sampling profiler and show which calls hold its memory
    Profile(profile::Options),
    /// Run a command and report the blocks that it lost
    Leaks(leaks::Options),
    /// Print every option of the library with its value, default and unit
    Options(options::Options),
    /// Run a command under Freestone and record every call into a trace
    Record(record::Options),
    /// Print what a trace says: sizes, lifetimes, threads, live memory over time
    Trace(trace::Options),
    /// Repeat the calls of a trace under every allocator at hand, in interleaved rounds
    Replay(replay::Options),
    /// Build or list the other allocators to compare with
    Peers(peers::Options),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual, in roff
    Man(manual::Options),
}

/// Parses the command line and runs the subcommand; returns the exit status.
///
/// # Errors
/// Whatever the subcommand reports.
pub(crate) fn main() -> Result<u8> {
    interrupt::end_when_the_reader_is_gone();
    let arguments = match Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return Ok(refuse(&error)),
    };
    match arguments.command {
        Command::Run(options) => run::main(&options).map(unless_ended_early).map_err(not_started),
        Command::Compare(options) => compare::main(&options).map(|()| unless_ended_early(0)),
        Command::Bench(options) => bench::main(&options).map(unless_ended_early),
        Command::Experiment(options) => experiment::main(&options).map(|()| unless_ended_early(0)),
        Command::Report(options) => report::main(&options).map(|()| 0),
        Command::Top(options) => top::main(&options).map(unless_ended_early),
        Command::Profile(options) => profile::main(&options).map(unless_ended_early),
        Command::Leaks(options) => leaks::main(&options).map(unless_ended_early),
        Command::Options(options) => options::main(&options).map(|()| 0),
        Command::Record(options) => record::main(&options),
        Command::Trace(options) => trace::main(&options).map(|()| 0),
        Command::Replay(options) => replay::main(&options).map(unless_ended_early),
        Command::Peers(options) => peers::main(&options),
        Command::Completions { shell } => {
            completions::print(shell, &mut Cli::command());
            Ok(0)
        }
        Command::Man(options) => manual::main(&options, Cli::command()).map(|()| 0),
    }
}

/// Prints why the command line is refused, or the help that was asked for; returns the exit status.
fn refuse(error: &clap::Error) -> u8 {
    let printed = error.print();
    let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    match error.use_stderr() {
        false => {
            printing::keep(printed);
            0
        }
        true if is_run => Refusal::NOT_STARTED,
        true => FAILURE,
    }
}

/// The error of `run` before the command has run: its status is none that the command could have.
fn not_started(error: Error) -> Error {
    if error.is::<Refusal>() { error } else { Refusal::new(Refusal::NOT_STARTED, format!("{error:#}")).into() }
}

/// The exit status after `error`: for a command that cannot be run, the one that a shell gives.
pub(crate) fn status_of(error: &Error) -> u8 {
    unless_ended_early(error.downcast_ref::<Refusal>().map_or(FAILURE, |refusal| refusal.status))
}

/// `status`, or 128 + the signal that asked the lab to stop, or that of a run that took too long: a script must not mistake a measurement that
/// lacks something for a complete one.
fn unless_ended_early(status: u8) -> u8 {
    let status = if child::any_timed_out() { TIMED_OUT } else { status };
    interrupt::asked_by().map_or(status, |signal| 128 + signal as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_error_has_status_2_and_a_command_that_cannot_be_run_the_shells() {
        assert_eq!(status_of(&Error::msg("no such file")), 2);
        assert_eq!(status_of(&Refusal::new(Refusal::NOT_FOUND, String::new()).into()), 127);
        assert_eq!(status_of(&not_started(Error::msg("no library"))), 125);
        assert_eq!(status_of(&not_started(Refusal::new(Refusal::NOT_RUNNABLE, String::new()).into())), 126);
    }
}
