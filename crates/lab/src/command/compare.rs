//! `freestone compare`: the same command under every allocator at hand, in interleaved rounds.
//!
//! A warm-up comes first. Each run of it is watched to its exit, and the library is looked up among its mappings: an allocator that was not
//! in the process gets no figures. Exit statuses and outputs are compared with those of the first run. With `--server`, the server runs under
//! each allocator and the command is its client, which runs under none; memory and processor time are then the server's.

use crate::allocator::description::Allocator;
use crate::allocator::preloading::{self, Obstacle};
use crate::allocator::selection;
use crate::command::conclusion::Output;
use crate::measure::measurement::Measurement;
use crate::measure::order;
use crate::measure::summary::{Figure, Summary};
use crate::process::command_file::{self, Refusal};
use crate::process::command_run::{self, CommandRun};
use crate::process::{interrupt, server};
use crate::progress;
use crate::results::outcome::Outcome;
use crate::results::warning::Warning;
use crate::show::{command_line, quantity, summary_tables, table, verdict_text};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// The options of `freestone compare`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Allocators, comma-separated or repeated: NAME, or NAME=PATH.so, and then :OPTION=VALUE for each option; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds after the warm-up
    #[arg(short, long, default_value = "8")]
    rounds: NonZeroUsize,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "120")]
    timeout: NonZeroU64,
    /// A server to start under each allocator; the command is then its client. Words are separated by spaces, without shell syntax
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Milliseconds between starting the server and the client
    #[arg(long, default_value_t = 500, requires = "server")]
    server_wait: u64,
    /// Measure commands whose exit status is not 0 too
    #[arg(long)]
    ignore_failure: bool,
    #[command(flatten)]
    output: Output,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// What every run must agree with.
struct Expectation {
    exit: i32,
    /// Digest of standard output; `None` if the output differs from run to run.
    output_digest: Option<u64>,
}

impl Expectation {
    fn differs(&self, run: &CommandRun) -> bool {
        run.record.exit != self.exit || self.output_digest.is_some_and(|digest| digest != run.output_digest)
    }
}

/// Runs the comparison.
///
/// # Errors
/// The command or an allocator cannot be found, nothing can be measured, or results cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let path = command_file::find(watched_program(options)?)?;
    command_file::find(&options.command[0])?;
    let selection = selection::select(&options.allocators)?;
    let mut measurement = options.output.begin("compare", &selection.allocators)?;
    measurement.leave_out(selection.missing)?;
    let proven = measurement.prove(&selection.allocators)?;
    let subject = subject(options);
    let candidates = without_obstacle(&subject, proven, preloading::obstacle(&path), &mut measurement)?;
    let (allocators, expected) = warm_up(options, &subject, candidates, &mut measurement)?;
    let baseline = measurement.baseline(&allocators, &format!("'{subject}' could be measured under no allocator"))?;
    rounds(options, &subject, &allocators, &expected, &mut measurement)?;
    let summary = measurement.finish(&baseline)?;
    options.output.conclude(&measurement, &summary, || print(&summary, &subject))
}

/// The program that runs under the allocators: the server, or else the command.
fn watched_program(options: &Options) -> Result<OsString> {
    match &options.server {
        Some(server) => server.split_whitespace().next().map(OsString::from).context("--server names no command"),
        None => Ok(options.command[0].clone()),
    }
}

/// The name of what is measured.
fn subject(options: &Options) -> String {
    let command = command_line::quoted(&options.command);
    options.server.as_ref().map_or(command.clone(), |server| format!("{command} (server: {server})"))
}

/// Drops the allocators that `obstacle` keeps out of the command: all but the system's.
fn without_obstacle(
    subject: &str,
    allocators: Vec<Allocator>,
    obstacle: Option<Obstacle>,
    measurement: &mut Measurement,
) -> Result<Vec<Allocator>> {
    // Rights that a file gives may be no more than the user has: the warm-up sees whether the library is there.
    let Some(obstacle) = obstacle.filter(|obstacle| *obstacle != Obstacle::Privileged) else { return Ok(allocators) };
    let (kept_out, others): (Vec<_>, Vec<_>) = allocators.into_iter().partition(|one| one.library.is_some());
    for allocator in kept_out {
        let why = obstacle.to_string();
        measurement.warn(Warning::NotInProcess { subject: subject.into(), allocator: allocator.name, why })?;
    }
    Ok(others)
}

fn run_once(options: &Options, allocator: &Allocator, watch: bool) -> Result<CommandRun> {
    let limit = Duration::from_secs(options.timeout.get());
    let preload = allocator.preload();
    match &options.server {
        Some(text) => {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            server::run(&words, &options.command, preload, Duration::from_millis(options.server_wait), limit)
        }
        None => command_run::run_captured(&options.command, preload, limit, watch && allocator.library.is_some()),
    }
}

/// Runs the command once under each candidate. Returns those that proved to be in the process, and what later runs must agree with.
fn warm_up(
    options: &Options,
    subject: &str,
    candidates: Vec<Allocator>,
    measurement: &mut Measurement,
) -> Result<(Vec<Allocator>, Expectation)> {
    let mut expected = None;
    let mut proven = Vec::new();
    for allocator in candidates {
        if interrupt::asked() {
            break;
        }
        let run = match run_once(options, &allocator, true) {
            Ok(run) => run,
            // A command that cannot be run under one allocator cannot be run under any.
            Err(error) if error.is::<Refusal>() => return Err(error),
            Err(error) => {
                measurement.give_up(subject, &allocator.name, format!("{error:#}"))?;
                continue;
            }
        };
        let expected = expected.get_or_insert_with(|| first_expectation(options, &allocator, &run));
        if run.record.was_mapped == Some(false) {
            let why = "it was not among the mappings of the command at its exit".into();
            measurement.warn(Warning::NotInProcess { subject: subject.into(), allocator: allocator.name, why })?;
            continue;
        }
        if run.record.exit != 0 && !options.ignore_failure {
            let ending = run.record.ending();
            let what = format!("{ending}: {} (--ignore-failure measures it all the same)", run.last_lines);
            measurement.give_up(subject, &allocator.name, what)?;
            continue;
        }
        if expected.differs(&run) {
            measurement.warn(Warning::ResultsDiffer { subject: subject.into(), allocator: allocator.name.clone() })?;
        }
        proven.push(allocator);
    }
    Ok((proven, expected.unwrap_or(Expectation { exit: 0, output_digest: None })))
}

/// What later runs must agree with, from the first run and one more: an output that differs between the two is not compared.
fn first_expectation(options: &Options, allocator: &Allocator, run: &CommandRun) -> Expectation {
    let again = run_once(options, allocator, false).ok();
    let steady = again.is_some_and(|again| again.output_digest == run.output_digest);
    Expectation { exit: run.record.exit, output_digest: steady.then_some(run.output_digest) }
}

fn rounds(
    options: &Options,
    subject: &str,
    allocators: &[Allocator],
    expected: &Expectation,
    measurement: &mut Measurement,
) -> Result<()> {
    measurement.doubt_rounds(options.rounds.get(), allocators.len())?;
    let bar = progress::bar((options.rounds.get() * allocators.len()) as u64);
    for round in 0..options.rounds.get() {
        for turn in order::of_round(measurement.seed, subject, round, allocators.len()) {
            let allocator = &allocators[turn];
            bar.set_message(allocator.name.clone());
            if !interrupt::asked() && !measurement.is_given_up(subject, &allocator.name) {
                match run_once(options, allocator, false) {
                    Ok(run) => {
                        if expected.differs(&run) {
                            let allocator = allocator.name.clone();
                            measurement.warn(Warning::ResultsDiffer { subject: subject.into(), allocator })?;
                        }
                        measurement.keep(subject, &allocator.name, round, Outcome::Command(run.record))?;
                    }
                    Err(_) if interrupt::asked() => {}
                    Err(error) => measurement.give_up(subject, &allocator.name, format!("{error:#}"))?,
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn print(summary: &Summary, subject: &str) {
    println!("{subject}\n");
    summary_tables::print_ranking(summary);
    let base = summary.allocators().first().cloned().unwrap_or_default();
    let header = ["", "time", "of it", "processor", "of it", "peak RSS", "of it", "page faults"];
    let header = header.map(|text| text.replace("of it", &format!("/ {base}")));
    let row = |allocator: &String| {
        let cell = |figure| summary.cell(subject, allocator, figure);
        let value = |figure, show: fn(f64) -> String| cell(figure).map_or_else(String::new, |cell| show(cell.median));
        let ratio = |figure| {
            cell(figure).and_then(|cell| cell.ratio).map_or_else(String::new, |ratio| verdict_text::verdict(&ratio))
        };
        vec![
            summary.label(allocator),
            value(Figure::Time, quantity::time),
            ratio(Figure::Time),
            value(Figure::Cpu, quantity::time),
            ratio(Figure::Cpu),
            value(Figure::PeakRss, quantity::bytes),
            ratio(Figure::PeakRss),
            value(Figure::Faults, |faults| quantity::count(faults as u64)),
        ]
    };
    let rows: Vec<Vec<String>> = summary.allocators().iter().map(row).collect();
    table::print(&header, &rows, 1);
    println!("{}", verdict_text::legend(&rows, "medians; ratios with their 95 % interval"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command_record::CommandRecord;

    fn run(exit: i32, output_digest: u64) -> CommandRun {
        let record = CommandRecord { exit, ..CommandRecord::example(1, 1) };
        CommandRun { record, output_digest, last_lines: String::new() }
    }

    #[test]
    fn a_run_differs_in_its_status_or_in_an_output_that_is_steady() {
        let expected = Expectation { exit: 0, output_digest: Some(7) };
        assert!(!expected.differs(&run(0, 7)) && expected.differs(&run(0, 8)) && expected.differs(&run(1, 7)));
        let unsteady = Expectation { exit: 0, output_digest: None };
        assert!(!unsteady.differs(&run(0, 8)) && unsteady.differs(&run(1, 8)));
    }
}
