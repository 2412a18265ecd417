//! `freestone record`: any command under Freestone, which writes every call into a trace.
//!
//! The command keeps its terminal, its input and its exit status. The processes that it starts have traces of their own, beside the first. With stacks,
//! each has a heap profile of the same run beside its trace.

use crate::allocator::{preloading, selection};
use crate::process::command_file::{self, Refusal};
use crate::process::{command_run, interrupt};
use crate::show::quantity;
use crate::trace::analysis::Analysis;
use crate::trace::profile_beside;
use crate::trace::recording::Recording;
use crate::trace::strip;
use crate::trace::timeline::Timeline;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
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
    output: PathBuf,
    /// The library that records: freestone, or NAME=PATH.so, with options behind it
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]", default_value = "freestone")]
    allocator: String,
    /// Take addresses and the command's arguments out, so that the traces can be shared
    #[arg(long)]
    strip: bool,
    /// Have a heap profile of the same run written beside each trace, with one byte in so many sampled, so that `freestone trace` shows call sites
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "64k", conflicts_with = "strip")]
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
    let mut allocator = selection::select(std::slice::from_ref(&options.allocator))?.allocators.remove(0);
    if allocator.library.is_none() {
        bail!("{}", selection::only_freestone("calls are recorded"));
    }
    let output = std::path::absolute(&options.output).context("the working directory is not known")?;
    if output.to_str().is_none() {
        bail!("{} is not UTF-8, and the library takes no other name; choose another file: -o FILE", output.display());
    }
    remove_old(&output)?;
    allocator.environment.push((VARIABLE.into(), output.clone().into()));
    if let Some(interval) = &options.stacks {
        let variable = |name: &str, value: OsString| (format!("FREESTONE_HEAP_PROFILE{name}"), value);
        let file = profile_beside::pattern(&output);
        let variables = [variable("", "on".into()), variable("_INTERVAL", interval.into()), variable("_FILE", file)];
        allocator.environment.extend(variables);
    }
    interrupt::keep_for_the_command();
    let record = command_run::run_attached(&options.command, allocator.preload(), |_| {})?;
    interrupt::continue_when_the_reader_is_gone();
    let traces = traces(&output)?;
    if traces.is_empty() {
        let why = "it allocated nothing, or the library says above why it cannot write the file";
        let message = format!("the command left no trace {}: {why}", output.display());
        return Err(Refusal::after_the_command(record.exit, message).into());
    }
    let mut summaries = Vec::new();
    for trace in traces {
        if options.strip {
            strip_file(&trace)?;
        }
        summaries.push(summary(&trace)?);
    }
    // The process that called most is what people mean, however many shells started it.
    summaries.sort_by_key(|&(calls, _)| std::cmp::Reverse(calls));
    let n_others = summaries.len().saturating_sub(MOST_SUMMARIES);
    summaries.iter().take(MOST_SUMMARIES).for_each(|(_, text)| eprintln!("{text}"));
    if n_others > 0 {
        eprintln!("and {n_others} traces of processes that called less, in {}.*", output.display());
    }
    Ok(record.exit.clamp(0, 255) as u8)
}

/// Removes the traces of an earlier recording, and the profiles beside them.
fn remove_old(output: &Path) -> Result<()> {
    let is_profile = |name: &str, other: &str| {
        other.strip_suffix(profile_beside::ENDING).is_some_and(|first| first != name && is_of(name, first))
    };
    for old in traces(output)?.into_iter().chain(beside(output, is_profile)?) {
        fs::remove_file(&old).with_context(|| format!("{} cannot be replaced", old.display()))?;
    }
    if output.exists() {
        bail!("{} exists and is no trace; choose another file: -o FILE", output.display());
    }
    Ok(())
}

/// The trace at `output`, and those whose names have a process's number behind that, the first one first.
fn traces(output: &Path) -> Result<Vec<PathBuf>> {
    let mut found = beside(output, is_of)?;
    found.retain(|path| starts_as_trace(path));
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}

/// The files in the folder of `output` whose names are right beside its name.
fn beside(output: &Path, is_right: impl Fn(&str, &str) -> bool) -> Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (output.parent(), output.file_name()) else {
        bail!("{} is no file", output.display());
    };
    let name = name.to_string_lossy();
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let entries = entries.flatten().filter(|entry| is_right(&name, &entry.file_name().to_string_lossy()));
    Ok(entries.map(|entry| entry.path()).collect())
}

/// Whether a file called `other` belongs to the recording into `name`.
fn is_of(name: &str, other: &str) -> bool {
    let Some(rest) = other.strip_prefix(name) else { return false };
    rest.is_empty() || rest.starts_with('.') && rest.split('.').skip(1).all(|part| part.parse::<u32>().is_ok())
}

fn starts_as_trace(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 8];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == freestone_trace::file::MAGIC
}

fn strip_file(path: &Path) -> Result<()> {
    let mut recording = Recording::open(path)?;
    recording.strip();
    fs::write(path, strip::encode(&recording)).with_context(|| format!("{} cannot be written", path.display()))
}

/// The number of calls, and a summary in words.
fn summary(path: &Path) -> Result<(u64, String)> {
    let recording = Recording::open(path)?;
    let figures = Analysis::of(&Timeline::of(&recording));
    let events = recording.n_events();
    let mut text = format!(
        "recorded {} calls of {} into {} ({}, {:.1} bytes a call); at most {} were live",
        quantity::count(events),
        recording.command,
        path.display(),
        quantity::bytes(recording.used_bytes as f64),
        recording.used_bytes as f64 / events.max(1) as f64,
        quantity::bytes(figures.peak_live_bytes as f64),
    );
    for doubt in recording.doubts() {
        text.push_str("\nwarning: ");
        text.push_str(&doubt);
    }
    Ok((events, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traces_of_other_processes_have_a_number_after_the_name() {
        assert!(is_of("a.trace", "a.trace") && is_of("a.trace", "a.trace.12") && is_of("a.trace", "a.trace.12.2"));
        assert!(!is_of("a.trace", "a.trace.gz") && !is_of("a.trace", "b.trace") && !is_of("a.trace", "a.trace12"));
    }
}
