//! Client and server: the server runs under the allocator, the client under none.
//!
//! The time is the client's; memory, faults and processor time are the server's. The server is asked to end (SIGTERM) when the client has, and
//! must be gone within ten seconds.

use crate::allocator::Allocator;
use crate::command::{self, Ran, Scratch};
use crate::{child, interrupt};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// Runs `client` against `server`, which runs under `allocator`.
///
/// # Errors
/// Either cannot be started, the server ends early, or the client takes longer than `limit`.
pub(crate) fn run(
    server: &[OsString],
    client: &[OsString],
    allocator: &Allocator,
    wait: Duration,
    limit: Duration,
) -> Result<Ran> {
    let report = Scratch::new("server");
    let mut launcher = command::launcher(server, allocator, report.path(), allocator.library.is_some())?;
    launcher.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut running = interrupt::while_blocked(|| launcher.spawn()).context("the server could not be started")?;
    thread::sleep(wait);
    if running.try_wait().context("the server could not be watched")?.is_some() {
        let launched = command::read_report(report.path())?;
        bail!("the server ended with status {} before the client started; try it by itself", launched.exit);
    }
    let outcome = command::run_captured(client, &Allocator::system(), limit, false);
    end(&mut running)?;
    let mut ran = outcome.context("the client")?;
    let served = command::read_report(report.path())?;
    let (wall_ns, exit) = (ran.launched.wall_ns, ran.launched.exit);
    ran.launched = crate::launch::Launched { wall_ns, exit, ..served };
    Ok(ran)
}

/// Asks the server to end, through its launcher, and makes sure; at once if the lab itself is to stop.
fn end(launcher: &mut Child) -> Result<()> {
    child::send(launcher, libc::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < FAREWELL && !interrupt::asked() {
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
    bail!("the server did not end within {} s of SIGTERM and was killed", FAREWELL.as_secs())
}
