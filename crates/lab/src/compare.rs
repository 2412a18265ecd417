//! `freestone compare`: the same command under every allocator at hand, in interleaved rounds, after a warm-up that proves the allocator was there.
//!
//! In the warm-up each run is watched to its exit and the library looked for among its mappings: an allocator that was not in the process has no
//! figures. Exit statuses and outputs are compared with the baseline's. For a client and a server, `--server` is started under each allocator
//! and the command is the client, under none; the figures of memory and processor time are then the server's.

use crate::allocator::{self, Allocator};
use crate::command::{self, Ran};
use crate::executable::CannotRun;
use crate::measure::Measurement;
use crate::results::Outcome;
use crate::summary::{Figure, Summary};
use crate::warning::Warning;
use crate::{bench, executable, interrupt, progress, quantity, report, server, table};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// What `freestone compare` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Allocators, comma-separated or repeated: NAME, or NAME=PATH.so; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds after the warm-up
    #[arg(short, long, default_value = "8")]
    rounds: NonZeroUsize,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "120")]
    timeout: NonZeroU64,
    /// A server to start under each allocator; the command is then its client. Written as one would type it, without shell syntax
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Milliseconds the server has to come up before the client starts
    #[arg(long, default_value_t = 500, requires = "server")]
    server_wait: u64,
    /// Accept commands whose exit status is not 0
    #[arg(long)]
    ignore_failure: bool,
    /// Seed of the order in which allocators run within each round: that of a results file repeats its order [default: drawn]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// Results file to write [default: freestone-results/TIME-compare.jsonl]
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Do not write the HTML page
    #[arg(long)]
    no_report: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// What each run is checked against.
struct Expected {
    exit: i32,
    output: Option<u64>,
}

/// Runs the comparison.
///
/// # Errors
/// The command or an allocator cannot be found, or results cannot be written.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let watched = watched_program(options)?;
    let path = executable::find_command(&watched)?;
    executable::find_command(&options.command[0])?;
    let selection = allocator::select(&options.allocators)?;
    let mut measurement = Measurement::begin("compare", options.out.as_deref(), options.seed, &selection.allocators)?;
    for what in selection.missing {
        measurement.warn(Warning::Missing { what })?;
    }
    let proven = bench::prove(&selection.allocators, &mut measurement)?;
    let subject = subject(options);
    let (allocators, expected) = warm_up(options, &subject, proven, executable::obstacle(&path), &mut measurement)?;
    let Some(baseline) = allocators.first().map(|allocator| allocator.name.clone()) else {
        measurement.print_warnings();
        bail!("'{subject}' could be measured under no allocator");
    };
    rounds(options, &subject, &allocators, &expected, &mut measurement)?;
    let summary = measurement.finish(&baseline)?;
    if options.json {
        bench::print_json(&summary, &measurement)?;
    } else {
        print(&summary, &subject);
    }
    measurement.print_warnings();
    if !options.no_report {
        let page = measurement.path().with_extension("html");
        report::write(&[measurement.path()], &page)?;
        eprintln!("report:  {}", page.display());
    }
    Ok(0)
}

fn watched_program(options: &Options) -> Result<OsString> {
    match &options.server {
        Some(server) => server.split_whitespace().next().map(OsString::from).context("--server names no command"),
        None => Ok(options.command[0].clone()),
    }
}

fn subject(options: &Options) -> String {
    let command = command::shown(&options.command);
    options.server.as_ref().map_or(command.clone(), |server| format!("{command} (server: {server})"))
}

fn run_once(options: &Options, allocator: &Allocator, watch: bool) -> Result<Ran> {
    let limit = Duration::from_secs(options.timeout.get());
    match &options.server {
        Some(text) => {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            server::run(&words, &options.command, allocator, Duration::from_millis(options.server_wait), limit)
        }
        None => command::run_captured(&options.command, allocator, limit, watch && allocator.library.is_some()),
    }
}

/// One run under each: proves the allocator, and learns the exit status and the output to expect.
fn warm_up(
    options: &Options,
    subject: &str,
    candidates: Vec<Allocator>,
    obstacle: Option<executable::Obstacle>,
    measurement: &mut Measurement,
) -> Result<(Vec<Allocator>, Expected)> {
    let mut expected = None;
    let mut proven = Vec::new();
    for allocator in candidates {
        if interrupt::asked() {
            break;
        }
        if let (Some(obstacle), true) = (&obstacle, allocator.library.is_some()) {
            let why = obstacle.to_string();
            measurement.warn(Warning::NotInProcess { subject: subject.into(), allocator: allocator.name, why })?;
            continue;
        }
        let ran = match run_once(options, &allocator, true) {
            Ok(ran) => ran,
            // What cannot be run at all cannot be run under any other.
            Err(error) if error.is::<CannotRun>() => return Err(error),
            Err(error) => {
                measurement.give_up(subject, &allocator.name, format!("{error:#}"))?;
                continue;
            }
        };
        let expected = expected.get_or_insert_with(|| first_expectation(options, &allocator, &ran));
        if ran.launched.was_mapped == Some(false) {
            let why = "it was not among the mappings of the command at its exit".into();
            measurement.warn(Warning::NotInProcess { subject: subject.into(), allocator: allocator.name, why })?;
            continue;
        }
        if ran.launched.exit != 0 && !options.ignore_failure {
            let how = ran.launched.ending();
            let what = format!("{how}: {} (--ignore-failure measures it all the same)", ran.said);
            measurement.give_up(subject, &allocator.name, what)?;
            continue;
        }
        if differs(&ran, expected) {
            measurement.warn(Warning::ResultsDiffer { subject: subject.into(), allocator: allocator.name.clone() })?;
        }
        proven.push(allocator);
    }
    Ok((proven, expected.unwrap_or(Expected { exit: 0, output: None })))
}

/// The first run decides what is expected; a command whose output varies by itself is not held to it.
fn first_expectation(options: &Options, allocator: &Allocator, ran: &Ran) -> Expected {
    let again = run_once(options, allocator, false).ok();
    let steady = again.is_some_and(|again| again.output == ran.output);
    Expected { exit: ran.launched.exit, output: steady.then_some(ran.output) }
}

fn differs(ran: &Ran, expected: &Expected) -> bool {
    ran.launched.exit != expected.exit || expected.output.is_some_and(|output| output != ran.output)
}

fn rounds(
    options: &Options,
    subject: &str,
    allocators: &[Allocator],
    expected: &Expected,
    measurement: &mut Measurement,
) -> Result<()> {
    measurement.doubt_rounds(options.rounds.get(), allocators.len())?;
    let bar = progress::bar((options.rounds.get() * allocators.len()) as u64);
    for round in 0..options.rounds.get() {
        for turn in measurement.seed.order(subject, round, allocators.len()) {
            let allocator = &allocators[turn];
            bar.set_message(allocator.name.clone());
            if !interrupt::asked() && !measurement.is_given_up(subject, &allocator.name) {
                match run_once(options, allocator, false) {
                    Ok(ran) => {
                        if differs(&ran, expected) {
                            let allocator = allocator.name.clone();
                            measurement.warn(Warning::ResultsDiffer { subject: subject.into(), allocator })?;
                        }
                        measurement.keep(subject, &allocator.name, round, Outcome::Command(ran.launched))?;
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
    bench::print_standing(summary);
    let base = summary.allocators().first().cloned().unwrap_or_default();
    let header = ["", "time", "of it", "processor", "of it", "peak RSS", "of it", "page faults"];
    let header = header.map(|text| text.replace("of it", &format!("/ {base}")));
    let row = |allocator: &String| {
        let cell = |figure| summary.cell(subject, allocator, figure);
        let value = |figure, show: fn(f64) -> String| cell(figure).map_or_else(String::new, |cell| show(cell.median));
        let ratio =
            |figure| cell(figure).and_then(|cell| cell.ratio).map_or_else(String::new, |ratio| bench::verdict(&ratio));
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
    println!("{}", bench::legend(&rows, "medians; ratios with their 95 % interval"));
}
