//! The command line.

use crate::executable::CannotRun;
use crate::{bench, compare, experiment, interrupt, options, report, run};
use anyhow::{Error, Result};
use clap::{CommandFactory, Parser, Subcommand};
use std::io;

/// Your program under every allocator, measured.
#[derive(Parser)]
#[command(name = "freestone", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a command under Freestone and sum up its memory; without a command, the built-in demo
    Run(run::Options),
    /// Run a command under every allocator at hand, in interleaved rounds
    Compare(compare::Options),
    /// Run the built-in workloads under every allocator at hand
    Bench(bench::Options),
    /// Reproduce a published experiment, the published figures beside the measured ones
    Experiment(experiment::Options),
    /// Make one HTML page from result files
    Report(report::Options),
    /// Print every option of the library with its value, default and unit
    Options(options::Options),
    /// Build or list the other allocators to compare with
    Peers(crate::peers::Options),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual, in roff
    Man,
}

/// Parses the command line and does what it says.
///
/// # Errors
/// What the command reports.
pub(crate) fn main() -> Result<u8> {
    interrupt::end_with_the_reader();
    match Cli::parse().command {
        Command::Run(options) => run::main(&options).map(unless_interrupted),
        Command::Compare(options) => compare::main(&options).map(unless_interrupted),
        Command::Experiment(options) => experiment::main(&options).map(|()| unless_interrupted(0)),
        Command::Report(options) => report::main(&options).map(|()| 0),
        Command::Options(options) => options::main(&options).map(|()| 0),
        Command::Bench(options) => bench::main(&options).map(unless_interrupted),
        Command::Peers(options) => crate::peers::main(&options),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "freestone", &mut io::stdout());
            Ok(0)
        }
        Command::Man => print_manual().map(|()| 0),
    }
}

/// One page, with those of the commands behind the overview that names them.
fn print_manual() -> Result<()> {
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
        clap_mangen::Man::new(command.clone()).render(&mut io::stdout())?;
    }
    Ok(())
}

/// What a shell reports of a command that the signal ended, so that a script does not take half a measurement for a whole one.
fn unless_interrupted(status: u8) -> u8 {
    interrupt::asked_by().map_or(status, |signal| 128 + signal as u8)
}

/// The exit status after an error: of a command that cannot be run the shell's, of a measurement that was stopped the signal's.
pub(crate) fn status_of(error: &Error) -> u8 {
    unless_interrupted(error.downcast_ref::<CannotRun>().map_or(2, |refused| refused.status))
}
