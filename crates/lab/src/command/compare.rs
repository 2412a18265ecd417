//! `freestone compare`: the same command under every allocator at hand, in interleaved rounds.
//!
//! A warm-up comes first. Each run of it is watched to its exit, and the library is looked up among its mappings: an allocator that was not
//! in the process gets no figures. Exit statuses and outputs are compared with those of the first run. Each run reads `--input` from its
//! beginning, or has no input. With `--server`, the server runs under
//! each allocator and the command is its client, which runs under none; memory and processor time are then the server's.

use crate::allocator::selection;
use crate::command::conclusion::Output;
use crate::measure::commands::CommandJob;
use crate::measure::summary::{Figure, Summary};
use crate::process::child;
use crate::process::server::Server;
use crate::progress;
use crate::show::{command_line, quantity, summary_tables, table, verdict_text};
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::fs::File;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// The options of `freestone compare`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Allocators, comma-separated or repeated: NAME (system, freestone, or one of `freestone peers list`), or NAME=PATH.so, and then :OPTION=VALUE for each option; the first is the baseline [default: all at hand]
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
    /// Standard input of each run of the command, or of the client of a server: it has none otherwise
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Measure commands whose exit status is not 0 too
    #[arg(long)]
    ignore_failure: bool,
    #[command(flatten)]
    output: Output,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the comparison.
///
/// # Errors
/// The command or an allocator cannot be found, nothing can be measured, or results cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let job = job(options)?;
    job.check()?;
    let selection = selection::select(&options.allocators)?;
    let mut measurement = options.output.begin("compare", &selection.allocators)?;
    measurement.leave_out(selection.missing)?;
    let proven = measurement.prove(&selection.allocators)?;
    if options.input.is_none() && child::input_is_waiting() {
        measurement.leave_out([UNREAD.to_owned()])?;
    }
    let warm = job.warm_up(proven, &mut measurement)?;
    let nothing = format!("'{}' could not be measured under any allocator", job.subject);
    let baseline = measurement.baseline(&warm.allocators, &nothing)?;
    measurement.doubt_rounds(options.rounds.get(), warm.allocators.len())?;
    let bar = progress::bar((options.rounds.get() * warm.allocators.len()) as u64);
    warm.measure(options.rounds.get(), &bar, &mut measurement)?;
    bar.finish_and_clear();
    let summary = measurement.finish(&baseline)?;
    measurement.refuse_emptiness(&summary)?;
    options.output.conclude(&measurement, &summary, || print(&summary, &job.subject))
}

/// Why the command did not read what the lab was given to read.
const UNREAD: &str = "the command got no input: each run would need all of it, and the standard input can be read once; give --input FILE";

/// What is measured.
fn job(options: &Options) -> Result<CommandJob> {
    let command = command_line::quoted(&options.command);
    let server = options.server.as_deref().map(|text| server(text, options.server_wait)).transpose()?;
    if let Some(file) = &options.input {
        File::open(file).with_context(|| format!("--input {} cannot be read", file.display()))?;
    }
    Ok(CommandJob {
        subject: options.server.as_ref().map_or(command.clone(), |server| format!("{command} (server: {server})")),
        command: options.command.clone(),
        server,
        input: options.input.clone(),
        folder: None,
        limit: Duration::from_secs(options.timeout.get()),
        ignore_failure: Some(options.ignore_failure),
    })
}

fn server(text: &str, wait_ms: u64) -> Result<Server> {
    let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    ensure!(!words.is_empty(), "--server names no command");
    Ok(Server { words, wait: Duration::from_millis(wait_ms) })
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
