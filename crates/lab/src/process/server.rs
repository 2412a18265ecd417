//! One run of a client against a server: the server runs under the allocator, the client under none.
//!
//! Time and exit status are the client's; memory, page faults and processor time are the server's. After the client has ended, the lab asks
//! the server to end (SIGTERM) and kills it if it is still there ten seconds later.

use crate::process::command_record::CommandRecord;
use crate::process::command_run::{self, CommandRun};
use crate::process::preload::Preload;
use crate::process::scratch_file::ScratchFile;
use crate::process::{child, interrupt};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

/// Starts `server` under `preload`, runs `client` once `wait` has passed, and ends the server.
///
/// # Errors
/// Either cannot be started, the server ends early, or the client takes longer than `limit`.
pub(crate) fn run(
    server: &[OsString],
    client: &[OsString],
    preload: Preload<'_>,
    wait: Duration,
    limit: Duration,
) -> Result<CommandRun> {
    let report = ScratchFile::new("server");
    let mut launcher = command_run::launcher(server, preload, report.path(), preload.library.is_some())?;
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut running = interrupt::while_blocked(|| launcher.spawn()).context("the server could not be started")?;
    thread::sleep(wait);
    if running.try_wait().context("the server could not be watched")?.is_some() {
        let record = command_run::read_record(report.path())?;
        bail!("the server ended with status {} before the client started; try it by itself", record.exit);
    }
    let outcome = command_run::run_captured(client, Preload::NONE, limit, false);
    end(&mut running)?;
    let mut run = outcome.context("the client")?;
    let of_server = command_run::read_record(report.path())?;
    run.record =
        CommandRecord { wall_ns: run.record.wall_ns, exit: run.record.exit, signal: run.record.signal, ..of_server };
    Ok(run)
}

/// Asks the server to end, through its launcher, and kills it if it does not; at once if the lab itself is asked to stop.
fn end(launcher: &mut Child) -> Result<()> {
    child::send(launcher, libc::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < SHUTDOWN_LIMIT && !interrupt::asked() {
        if launcher.try_wait().context("the server could not be waited for")?.is_some() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(5));
    }
    child::end_group(launcher);
    launcher.wait().context("the server could not be waited for")?;
    if interrupt::asked() {
        bail!("interrupted");
    }
    bail!("the server did not end within {} s of SIGTERM and was killed", SHUTDOWN_LIMIT.as_secs())
}
