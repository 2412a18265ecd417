//! `freestone run`: any command under Freestone, with a summary of its memory when it ends; without a command, the demo.
//!
//! The command keeps its terminal, its input and its exit status, and receives the signals that are sent to the lab. The lab ends when the
//! command has ended. The summary goes to stderr, because stdout belongs to the command.

mod demo;
mod exit_summary;

use crate::allocator::{preloading, selection};
use crate::measure::statistics::ENOUGH_ROUNDS;
use crate::process::exit_report::{self, Report};
use crate::process::last_states::LastStates;
use crate::process::memory_timeline::{self, Timeline};
use crate::process::{command_file, command_run, interrupt, live_process};
use crate::results::machine::Machine;
use crate::results::timestamp;
use crate::scratch_file::ScratchFile;
use crate::show::{command_line, origin, timeline_files};
use anyhow::{Context, Result};
use exit_summary::{EndedCommand, Presence};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The options of `freestone run`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Another allocator to run under: NAME (`freestone peers list` has them), or NAME=PATH.so, and then :OPTION=VALUE for each option
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]", default_value = "freestone")]
    allocator: String,
    /// Record resident, live, dirty and committed memory every 50 ms, summed over the command's processes: as CSV in FILE, and as a plot in
    /// FILE.svg; if FILE ends in .svg, it is the plot
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Rounds of the demo; in each it runs once under the system's allocator and once under Freestone
    #[arg(short, long, default_value_t = ENOUGH_ROUNDS, conflicts_with = "command")]
    rounds: usize,
    /// Seed of the order of the two within each round of the demo [default: random]
    #[arg(long, value_name = "NUMBER", conflicts_with = "command")]
    seed: Option<u32>,
    /// Print the summary as JSON (on stderr when there is a command)
    #[arg(long)]
    json: bool,
    /// Write the summary to FILE, as JSON, too
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The command and its arguments; without a command, the built-in demo runs under two allocators
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Runs the command; returns its exit status.
///
/// # Errors
/// The command or the allocator cannot be found.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let Some(program) = options.command.first() else {
        let summary = demo::compare(options.rounds, options.seed, options.json)?;
        return write_summary(options, &summary).map(|()| 0);
    };
    let path = command_file::find(program)?;
    let mut allocator = selection::select_one(&options.allocator)?;
    interrupt::keep_for_the_command();
    let file = ScratchFile::new("report")?;
    allocator.environment.push((exit_report::VARIABLE.into(), file.path().into()));
    if options.timeline.is_some() {
        allocator.environment.push((exit_report::STEP_VARIABLE.into(), memory_timeline::STEP_MS.to_string().into()));
    }
    let states = LastStates::new().context("no folder for the command's last state can be made")?;
    allocator.environment.extend(states.iter().map(LastStates::variable));
    let mut timeline = options.timeline.as_ref().map(|_| Timeline::new());
    let record = command_run::run_attached(&options.command, allocator.preload(), |launcher| {
        if let Some(timeline) = &mut timeline {
            timeline.observe(launcher);
        }
    })?;
    let mut report = Report::read(file.path());
    report.add_last_states(states.iter().flat_map(LastStates::read).collect());
    report.note_running(|pid| live_process::name_and_start(pid).is_some());
    drop((file, states));
    let presence = Presence::of(&allocator, &report, preloading::obstacle(&path));
    let ended =
        EndedCommand { arguments: &options.command, allocator: &allocator, record: &record, report: &report, presence };
    let summary = ended.to_json();
    let mut text = if options.json { format!("{summary}\n") } else { ended.to_text() };
    // The command has run: a file that cannot be written changes nothing about its exit status.
    if let Err(error) = write_summary(options, &summary) {
        let _ = writeln!(text, "  not written    {error:#}");
    }
    if let (Some(timeline), Some(file)) = (&timeline, &options.timeline) {
        let what = format!("{} under {}", command_line::quoted(&options.command), allocator.label());
        let place = origin::of(&Machine::here(), timestamp::now());
        let _ = match timeline_files::write(&timeline.rows(&report), [&what, &place], file) {
            Ok([table, picture]) => writeln!(text, "  timeline       {} and {}", table.display(), picture.display()),
            Err(error) => writeln!(text, "  not written    {error:#}"),
        };
    }
    // The command may have ended because the terminal is gone. Its exit status counts all the same.
    interrupt::continue_when_the_reader_is_gone();
    eprint!("{text}");
    Ok(record.exit.clamp(0, 255) as u8)
}

/// Writes the summary where `--out` says.
fn write_summary(options: &Options, summary: &serde_json::Value) -> Result<()> {
    let Some(file) = &options.out else { return Ok(()) };
    let text = serde_json::to_string_pretty(summary).context("the summary cannot be written as JSON")?;
    std::fs::write(file, text + "\n").with_context(|| format!("the summary cannot be written to {}", file.display()))
}
