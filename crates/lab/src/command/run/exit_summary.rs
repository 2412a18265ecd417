//! The summary that `freestone run` prints when the command has ended: as text or as JSON.

use crate::allocator::description::Allocator;
use crate::allocator::preloading::Obstacle;
use crate::process::command_record::CommandRecord;
use crate::process::exit_report::Report;
use crate::show::{command_line, quantity};
use serde_json::json;
use std::ffi::OsString;

/// Whether the allocator was in the process.
pub(super) enum Presence {
    /// It was.
    Proven,
    /// It leaves no report, but nothing in the command's file keeps it out.
    Likely,
    /// It leaves a report with its first allocation, and there is none.
    Unseen,
    /// It was not; the text says why.
    Absent(String),
}

impl Presence {
    /// What the library's report, and the obstacle in the command's file, say about `allocator`.
    pub(super) fn of(allocator: &Allocator, report: &Report, obstacle: Option<Obstacle>) -> Self {
        if allocator.library.is_none() {
            return Self::Proven;
        }
        // What was seen counts more than what the file lets expect: a setuid command that its owner starts is preloaded like any other.
        match obstacle {
            Some(Obstacle::OwnMalloc) if report.sum(|exit| exit.allocations) > 0 => Self::Proven,
            Some(Obstacle::OwnMalloc) => Self::Absent(Obstacle::OwnMalloc.to_string()),
            _ if report.started > 0 => Self::Proven,
            Some(obstacle) => Self::Absent(obstacle.to_string()),
            None if allocator.name == "freestone" => Self::Unseen,
            None => Self::Likely,
        }
    }
}

/// Why a library may leave no report although nothing in the command's file keeps it out.
const WHY_UNSEEN: &str = "the command allocated nothing, or clears its environment";

/// A command that has ended, and everything that was recorded of it.
pub(super) struct EndedCommand<'a> {
    /// The command and its arguments.
    pub(super) arguments: &'a [OsString],
    /// The allocator that it was to run under.
    pub(super) allocator: &'a Allocator,
    /// What the kernel counted.
    pub(super) record: &'a CommandRecord,
    /// What the library reported.
    pub(super) report: &'a Report,
    /// Whether the allocator was in the process.
    pub(super) presence: Presence,
}

impl EndedCommand<'_> {
    /// The summary as text.
    pub(super) fn to_text(&self) -> String {
        let (record, report) = (self.record, self.report);
        let title = match &self.presence {
            Presence::Proven | Presence::Likely => format!("ran under {}", self.allocator.name),
            Presence::Unseen => format!("ran, and {} left no report: {WHY_UNSEEN}", self.allocator.name),
            Presence::Absent(why) => format!("did NOT run under {}: {why}", self.allocator.name),
        };
        let name = self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut lines = vec![String::new(), format!("freestone: {name} {title}")];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:14} {text}"));
        if let Some(version) = &report.version {
            line("library", format!("freestone {version}, in {}", processes(report.started)));
        }
        for (name, text) in memory(report) {
            line(name, text);
        }
        for (name, text) in self.unreported() {
            line(name, text);
        }
        let whose = if report.started > 1 { ", of the largest process" } else { "" };
        line("peak RSS", format!("{}{whose}", quantity::bytes(record.peak_rss_bytes as f64)));
        line("page faults", quantity::count(record.minor_faults));
        let [wall, user, system] =
            [record.wall_ns, record.user_ns, record.system_ns].map(|ns| quantity::time(ns as f64));
        line("time", format!("{wall} (user {user}, system {system})"));
        if record.exit != 0 {
            line("end", record.ending());
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// What there is of processes that did not report their exit, as names and texts.
    fn unreported(&self) -> Vec<(&'static str, String)> {
        let report = self.report;
        let goes_on = |pid: &u32| report.running.contains(pid);
        let n_seen = report.last_states.iter().filter(|state| goes_on(&state.pid)).count();
        let n_unseen = report.running.len() - n_seen;
        let mut lines = Vec::new();
        for (n_processes, how) in [(report.last_states.len() - n_seen, None), (n_seen, Some(go_on(n_seen)))] {
            let how = how.unwrap_or_else(|| self.how_ended(n_processes));
            let whose = match n_processes {
                0 => continue,
                1 => "its figures are those of its last state",
                _ => "their figures are those of their last states",
            };
            lines.push(("last state", format!("{} {how}: {whose}", processes(n_processes))));
        }
        let n_ended = report.without_figures().saturating_sub(n_unseen);
        if n_ended > 0 {
            let (how, whom) = (self.how_ended(n_ended), if n_ended == 1 { "it" } else { "them" });
            lines.push((
                "not reported",
                format!("{} {how}, so only the kernel's figures cover {whom}", processes(n_ended)),
            ));
        }
        if n_unseen > 0 {
            lines.push(("not reported", format!("{} {}, without figures", processes(n_unseen), go_on(n_unseen))));
        }
        lines
    }

    /// How so many processes ended that did not report their exit.
    fn how_ended(&self, n_processes: usize) -> String {
        match self.record.signal {
            Some(_) if n_processes == 1 && self.report.started == 1 => self.record.ending(),
            _ => "ended by a signal or _exit".into(),
        }
    }

    /// The summary as JSON.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let (in_process, why) = match &self.presence {
            Presence::Proven => (Some(true), None),
            Presence::Likely => (None, None),
            Presence::Unseen => (None, Some(WHY_UNSEEN)),
            Presence::Absent(why) => (Some(false), Some(why.as_str())),
        };
        json!({
            "command": command_line::quoted(self.arguments), "allocator": self.allocator, "in_process": in_process,
            "why_not": why, "kernel": self.record, "version": self.report.version, "processes": self.report.started,
            "exits": self.report.exits, "last_states": self.report.last_states, "running": self.report.running,
        })
    }
}

/// What the library counted, as names and texts. Numbers of blocks are sums over all processes. Memory is that of one process, the largest, in
/// every line: the peaks of several processes were never reached together, so their sum would mean nothing.
fn memory(report: &Report) -> Vec<(&'static str, String)> {
    let Some(largest) = report.largest() else { return Vec::new() };
    let n_processes = report.processes().count();
    let several = n_processes > 1;
    let bytes = |bytes: u64| quantity::bytes(bytes as f64);
    let all = if several { format!(", in {n_processes} processes together") } else { String::new() };
    let (allocations, frees) = (report.sum(|exit| exit.allocations), report.sum(|exit| exit.frees));
    let mut lines = vec![(
        "allocations",
        format!("{}, of which {} freed{all}", quantity::count(allocations), quantity::counted(frees, "was", "were")),
    )];
    if several {
        lines.push(("largest", format!("process {}, which the next two lines describe", largest.pid)));
    }
    let (peak, live) = (bytes(largest.peak_live_bytes), bytes(largest.live_bytes));
    let when = if report.exits.contains(largest) { "still live at its exit" } else { "live at its last state" };
    lines.push(("peak live", format!("{peak} ({live} {when})")));
    let (committed, purged) = (bytes(largest.peak_committed_bytes), bytes(largest.purged_bytes));
    lines.push(("from the OS", format!("at most {committed}, {purged} returned while it ran")));
    lines
}

/// That so many processes had not ended when the command had.
fn go_on(number: usize) -> String {
    if number == 1 { "goes on" } else { "go on" }.into()
}

fn processes(number: usize) -> String {
    quantity::counted(number as u64, "process", "processes")
}

#[cfg(test)]
mod tests;
