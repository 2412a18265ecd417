//! One run of a client against a server: the server runs under the allocator, the client under none.
//!
//! Time and exit status are the client's, unless the server failed; memory, page faults and processor time are the server's. One second after the client has ended, the
//! lab reads what the server's processes hold, asks the server to end (SIGTERM), and kills it if it is still there ten seconds later.

use crate::process::command_record::CommandRecord;
use crate::process::command_run::{self, CommandRun, RecordPipe, Surroundings};
use crate::process::preload::Preload;
use crate::process::{child, interrupt};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

/// How often a signal to the lab, or the end of a server, is looked for.
const POLL: Duration = Duration::from_millis(5);

/// How long after its client a server's memory is read.
const SETTLING: Duration = Duration::from_secs(1);

/// A server, and how long after its start the client starts.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// The command and its arguments.
    pub(crate) words: Vec<OsString>,
    /// Time between its start and the client's.
    pub(crate) wait: Duration,
}

/// Starts `server` under `preload`, runs `client` once the server's time to start has passed, and ends the server. Only the client reads the input.
///
/// # Errors
/// Either cannot be started, the server ends early, or the client takes longer than its limit.
pub(crate) fn run(
    server: &Server,
    client: &[OsString],
    preload: Preload<'_>,
    surroundings: Surroundings<'_>,
) -> Result<CommandRun> {
    let report = RecordPipe::new()?;
    let mut launcher = command_run::launcher(&server.words, preload, &report, preload.library.is_some())?;
    surroundings.folder.map(|folder| launcher.current_dir(folder));
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut running = interrupt::while_blocked(|| launcher.spawn()).context("the server could not be started")?;
    pause(server.wait);
    if running.try_wait().context("the server could not be watched")?.is_some() {
        let record = report.read()?;
        bail!("the server ended with status {} before the client started; try it by itself", record.exit);
    }
    let outcome = command_run::run_captured(client, Preload::NONE, surroundings, false);
    if outcome.is_ok() {
        pause(SETTLING);
    }
    let ended_early = child::has_ended(&running).context("the server could not be watched")?;
    let settled_bytes = descendants_bytes(running.id());
    end(&mut running)?;
    let mut run = outcome.context("the client")?;
    let of_server = report.read()?;
    if has_failed(&of_server, ended_early) {
        // What the client saw of the server is not what it was to do, whatever its own status is.
        (run.record.exit, run.record.signal) = (of_server.exit, of_server.signal);
        run.last_lines = "that is how the server ended".into();
    }
    let CommandRecord { wall_ns, exit, signal, .. } = run.record;
    run.record = CommandRecord { wall_ns, exit, signal, settled_bytes, ..of_server };
    Ok(run)
}

/// Whether a server failed: it ended by itself and not well, or by another signal than the one that asked it to end.
fn has_failed(server: &CommandRecord, ended_early: bool) -> bool {
    (ended_early && server.exit != 0) || server.signal.is_some_and(|signal| signal != libc::SIGTERM)
}

/// Waits for so long, or until the lab is asked to stop.
fn pause(time: Duration) {
    let began = Instant::now();
    while !interrupt::asked() && began.elapsed() < time {
        thread::sleep(POLL.min(time - began.elapsed().min(time)));
    }
}

/// What the descendants of `process` hold together, memory that they share in proportion; `None` if the kernel does not tell.
fn descendants_bytes(process: u32) -> Option<u64> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    let of_child = |child: u32| {
        let rollup = fs::read_to_string(format!("/proc/{child}/smaps_rollup")).unwrap_or_default();
        proportional_bytes(&rollup).unwrap_or(0) + descendants_bytes(child).unwrap_or(0)
    };
    let children: Vec<u32> = children.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    (!children.is_empty()).then(|| children.into_iter().map(of_child).sum())
}

/// The value of the line `Pss:     2048 kB`, in bytes.
fn proportional_bytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}

/// Asks the server to end, through its launcher, and kills it if it does not; at once if the lab itself is asked to stop.
fn end(launcher: &mut Child) -> Result<()> {
    child::send(launcher, libc::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < SHUTDOWN_LIMIT && !interrupt::asked() {
        if launcher.try_wait().context("the server could not be waited for")?.is_some() {
            return Ok(());
        }
        thread::sleep(POLL);
    }
    child::end_group(launcher);
    launcher.wait().context("the server could not be waited for")?;
    if interrupt::asked() {
        bail!("interrupted");
    }
    bail!("the server did not end within {} s of SIGTERM and was killed", SHUTDOWN_LIMIT.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_memory_of_descendants_is_read_and_a_process_without_any_has_none() {
        let mut shell = Command::new("sh").args(["-c", "sleep 60 & wait"]).process_group(0).spawn().unwrap();
        let bytes = (0..200).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            descendants_bytes(shell.id())
        });
        assert_eq!(descendants_bytes(u32::MAX), None);
        child::end_group(&shell);
        shell.wait().unwrap();
        assert!(bytes.unwrap() > 4096);
    }

    #[test]
    fn the_proportional_size_is_not_one_of_its_parts() {
        assert_eq!(proportional_bytes("Rss:   900 kB\nPss:     3 kB\nPss_Dirty:   1 kB\n"), Some(3072));
        assert_eq!(proportional_bytes("Rss: 900 kB\n"), None);
    }
}
