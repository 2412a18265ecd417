//! `freestone run`: any command under Freestone, with a summary of its memory when it ends; without a command, the demo.
//!
//! The command keeps its terminal, input and exit status, and gets the signals that are sent to the lab, which ends when the command has. The summary
//! goes to stderr, for stdout is the command's.

use crate::allocator::{self, Allocator};
use crate::exit_report::{self, Report};
use crate::launch::Launched;
use crate::statistics::ENOUGH_ROUNDS;
use crate::{command, demo, executable, interrupt, quantity, timeline};
use anyhow::Result;
use command::Scratch;
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What `freestone run` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Another allocator to run under: NAME, or NAME=PATH.so
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]", default_value = "freestone")]
    allocator: String,
    /// Write resident, live, dirty and committed memory every 50 ms to FILE (CSV), summed over the command's processes, and a plot of them to
    /// FILE.svg; if FILE ends in .svg, that is the plot
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Rounds of the demo, each once under the system's allocator and once under Freestone
    #[arg(short, long, default_value_t = ENOUGH_ROUNDS, conflicts_with = "command")]
    rounds: usize,
    /// Seed of the order of the two within each round of the demo [default: drawn]
    #[arg(long, value_name = "NUMBER", conflicts_with = "command")]
    seed: Option<u32>,
    /// Print the summary as JSON (on stderr when there is a command)
    #[arg(long)]
    json: bool,
    /// The command and its arguments; without one, the built-in demo is run under two allocators side by side
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Runs the command; the exit status is the command's.
///
/// # Errors
/// The command or the allocator cannot be found.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let Some(program) = options.command.first() else {
        return demo::compare(options.rounds, options.seed, options.json).map(|()| 0);
    };
    let path = executable::find_command(program)?;
    let mut selection = allocator::select(std::slice::from_ref(&options.allocator))?;
    let mut allocator = selection.allocators.remove(0);
    interrupt::keep_for_the_command();
    let file = Scratch::new("report");
    allocator.environment.push((exit_report::VARIABLE.into(), file.path().display().to_string()));
    if options.timeline.is_some() {
        allocator.environment.push((exit_report::STEP_VARIABLE.into(), timeline::STEP_MS.to_string()));
    }
    let mut timeline = options.timeline.as_ref().map(|_| timeline::Timeline::new());
    let launched = command::run_attached(&options.command, &allocator, |launcher| {
        if let Some(timeline) = &mut timeline {
            timeline.observe(launcher);
        }
    })?;
    let report = Report::read(file.path());
    drop(file);
    let presence = presence(&allocator, &report, &path);
    let mut text = if options.json {
        format!("{}\n", as_json(&options.command, &allocator, &launched, &report, &presence))
    } else {
        summary(&options.command, &allocator, &launched, &report, &presence)
    };
    if let (Some(timeline), Some(file)) = (&timeline, &options.timeline) {
        let [table, picture] = timeline.write(file, &report)?;
        let _ = writeln!(text, "  timeline       {} and {}", table.display(), picture.display());
    }
    // The terminal may be gone, and that is why the command ended: its exit status still counts.
    interrupt::outlive_the_reader();
    let _ = std::io::stderr().write_all(text.as_bytes());
    Ok(launched.exit.clamp(0, 255) as u8)
}

/// Whether the allocator was in the process, and why not.
enum Presence {
    Proven,
    /// A library that leaves no report, and nothing in the program's file speaks against it.
    Likely,
    Absent(String),
}

fn presence(allocator: &Allocator, report: &Report, path: &Path) -> Presence {
    if allocator.library.is_none() {
        return Presence::Proven;
    }
    match executable::obstacle(path) {
        Some(executable::Obstacle::OwnMalloc) if report.sum(|exit| exit.allocations) > 0 => Presence::Proven,
        Some(obstacle) => Presence::Absent(obstacle.to_string()),
        None if report.started > 0 => Presence::Proven,
        None if allocator.name == "freestone" => {
            Presence::Absent("the library left no sign of itself; does the command clear its environment?".into())
        }
        None => Presence::Likely,
    }
}

/// The summary of one run.
fn summary(
    arguments: &[OsString],
    allocator: &Allocator,
    launched: &Launched,
    report: &Report,
    presence: &Presence,
) -> String {
    let title = match presence {
        Presence::Proven | Presence::Likely => format!("ran under {}", allocator.name),
        Presence::Absent(why) => format!("did NOT run under {}: {why}", allocator.name),
    };
    let name = arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut lines = vec![String::new(), format!("freestone: {name} {title}")];
    let mut line = |name: &str, text: String| lines.push(format!("  {name:14} {text}"));
    if let Some(version) = &report.version {
        line("library", format!("freestone {version}, in {} process{}", report.started, plural(report.started)));
    }
    for (name, text) in memory(report) {
        line(name, text);
    }
    if report.unfinished() > 0 {
        let (unfinished, ending) = (report.unfinished(), plural(report.unfinished()));
        let why = "ended by a signal or _exit, so only the kernel's figures cover them";
        line("not reported", format!("{unfinished} process{ending} {why}"));
    }
    let whose = if report.started > 1 { ", of the largest process" } else { "" };
    line("peak RSS", format!("{}{whose}", quantity::bytes(launched.peak_rss_bytes as f64)));
    line("page faults", quantity::count(launched.minor_faults));
    let [wall, user, system] =
        [launched.wall_ns, launched.user_ns, launched.system_ns].map(|ns| quantity::time(ns as f64));
    line("time", format!("{wall} (user {user}, system {system})"));
    if launched.exit != 0 {
        line("end", launched.ending());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// What the library itself counted. Of several processes the blocks are added up, but memory is that of one, the largest, in every line: a sum of
/// peaks that were never reached together says nothing, and beside a single process's peak it could be the smaller figure.
fn memory(report: &Report) -> Vec<(&'static str, String)> {
    let Some(largest) = report.largest() else { return Vec::new() };
    let several = report.exits.len() > 1;
    let bytes = |bytes: u64| quantity::bytes(bytes as f64);
    let all = if several { format!(", in {} processes together", report.exits.len()) } else { String::new() };
    let (allocations, frees) = (report.sum(|exit| exit.allocations), report.sum(|exit| exit.frees));
    let mut lines = vec![(
        "allocations",
        format!("{}, of which {} were freed{all}", quantity::count(allocations), quantity::count(frees)),
    )];
    if several {
        lines.push(("largest", format!("process {}, which the next two lines are about", largest.pid)));
    }
    let (peak, live) = (bytes(largest.peak_live_bytes), bytes(largest.live_bytes));
    lines.push(("peak live", format!("{peak} ({live} still live at its exit)")));
    let (committed, purged) = (bytes(largest.peak_committed_bytes), bytes(largest.purged_bytes));
    lines.push(("from the OS", format!("{committed} at most, {purged} given back while it ran")));
    lines
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "es" }
}

fn as_json(
    arguments: &[OsString],
    allocator: &Allocator,
    launched: &Launched,
    report: &Report,
    presence: &Presence,
) -> serde_json::Value {
    let (in_process, why) = match presence {
        Presence::Proven => (Some(true), None),
        Presence::Likely => (None, None),
        Presence::Absent(why) => (Some(false), Some(why)),
    };
    json!({
        "command": command::shown(arguments), "allocator": allocator, "in_process": in_process, "why_not": why,
        "kernel": launched, "version": report.version, "processes": report.started, "exits": report.exits,
    })
}

/// The children of `pid`, as the kernel lists them.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let text: String = threads.map(of_thread).collect();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
