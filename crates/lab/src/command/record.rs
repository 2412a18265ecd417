//! `freestone record`: any command under Freestone, which writes every call into a trace.
//!
//! The command keeps its terminal, its input and its exit status. The processes that it starts have traces of their own, beside the first. With stacks,
//! each has a heap profile of the same run beside its trace.

mod run_folder;

use crate::allocator::{option_value, preloading, selection};
use crate::process::command_file::{self, Refusal};
use crate::process::{command_run, interrupt};
use crate::show::quantity;
use crate::trace::analysis::Analysis;
use crate::trace::profile_beside;
use crate::trace::recording::Recording;
use crate::trace::strip;
use crate::trace::timeline::Timeline;
use anyhow::{Context, Result, bail};
use run_folder::RunFolder;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that the library reads.
const VARIABLE: &str = "FREESTONE_RECORD";

/// Most traces that are summarised.
const MOST_SUMMARIES: usize = 4;

/// The options of `freestone record`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The trace to write; those of other processes get the process's number after the name
    #[arg(short, long, value_name = "TRACE", default_value = "freestone.trace")]
    out: PathBuf,
    /// The library that records: freestone, or NAME=PATH.so, with options behind it
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]", default_value = "freestone")]
    allocator: String,
    /// Take addresses and the command's arguments out, so that the traces can be shared
    #[arg(long)]
    strip: bool,
    /// Have a heap profile of the same run written beside each trace, with one byte in so many sampled, so that `freestone trace` shows call sites
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "64k", conflicts_with = "strip",
        value_parser = option_value::sampling_interval)]
    stacks: Option<String>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command; returns its exit status.
///
/// # Errors
/// The command or the library cannot be found, the library is not Freestone's, or there is no trace afterwards.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let program = &options.command[0];
    let path = command_file::find(program)?;
    if let Some(obstacle) = preloading::obstacle(&path) {
        bail!("{} cannot be recorded: {obstacle}", path.display());
    }
    let mut allocator = selection::select_one(&options.allocator)?;
    if allocator.library.is_none() {
        bail!("{}", selection::only_freestone("calls are recorded"));
    }
    let output = std::path::absolute(&options.out).context("the working directory is not known")?;
    if output.to_str().is_none() {
        bail!("{} is not UTF-8; choose another file: -o FILE", output.display());
    }
    let folder = RunFolder::new(&output)?;
    let first = folder.first();
    allocator.environment.push((VARIABLE.into(), first.clone().into()));
    if let Some(interval) = &options.stacks {
        let variable = |name: &str, value: OsString| (format!("FREESTONE_HEAP_PROFILE{name}"), value);
        let file = profile_beside::pattern(&first);
        let variables = [variable("", "on".into()), variable("_INTERVAL", interval.into()), variable("_FILE", file)];
        allocator.environment.extend(variables);
    }
    interrupt::keep_for_the_command();
    let record = command_run::run_attached(&options.command, allocator.preload(), |_| {})?;
    interrupt::continue_when_the_reader_is_gone();
    conclude(options, &folder, &output)
        .map_err(|error| Refusal::after_the_command(record.exit, format!("{error:#}")))?;
    Ok(record.exit.clamp(0, 255) as u8)
}

/// Moves the traces to their names, and says what is in them.
fn conclude(options: &Options, folder: &RunFolder, output: &Path) -> Result<()> {
    let traces = folder.traces()?;
    if traces.is_empty() {
        let why = "it allocated nothing, or the library says above why it cannot write the file";
        bail!("the command left no trace {}: {why}", output.display());
    }
    if options.strip {
        traces.iter().filter(|trace| !trace.goes_on).try_for_each(|trace| strip_file(&trace.path))?;
    }
    let mut summaries = Vec::new();
    for trace in folder.publish(traces)? {
        if trace.goes_on {
            let as_it_is = if options.strip { ", and is not stripped" } else { "" };
            eprintln!("process {} goes on: its trace stays {}{as_it_is}", trace.pid, trace.path.display());
        }
        summaries.push(summary(&trace.path)?);
    }
    // The process that called most is what people mean, however many shells started it.
    summaries.sort_by_key(|&(calls, _)| std::cmp::Reverse(calls));
    let n_others = summaries.len().saturating_sub(MOST_SUMMARIES);
    summaries.iter().take(MOST_SUMMARIES).for_each(|(_, text)| eprintln!("{text}"));
    if n_others > 0 {
        eprintln!("and {n_others} traces of processes that called less, in {}.*", output.display());
    }
    Ok(())
}

fn strip_file(path: &Path) -> Result<()> {
    strip::write(&Recording::open(path)?, path)
}

/// The number of calls, and a summary in words.
fn summary(path: &Path) -> Result<(u64, String)> {
    let recording = Recording::open(path)?;
    let figures = Analysis::of(&Timeline::of(&recording));
    let calls = recording.n_calls();
    let mut text = format!(
        "recorded {} calls of {} into {} ({}{}); at most {} were live",
        quantity::count(calls),
        recording.command,
        path.display(),
        quantity::bytes(recording.used_bytes as f64),
        recording.bytes_a_call(", "),
        quantity::bytes(figures.peak_live_bytes as f64),
    );
    for doubt in recording.doubts() {
        text.push_str("\nwarning: ");
        text.push_str(&doubt);
    }
    Ok((calls, text))
}
