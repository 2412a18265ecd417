//! Runs a child to its end with its output captured and within a time limit.
//!
//! The child leads a process group of its own. So Ctrl-C reaches the lab and not the child, and when the time is up, all processes that the
//! child started are killed with it.
//!
//! # Safety
//! `kill` is called with the number of a child that has not been waited for, or of the group that it leads.
#![allow(unsafe_code)]

use crate::process::interrupt;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Whether a child took longer than its limit, since this process started.
static TIMED_OUT: AtomicBool = AtomicBool::new(false);

/// Whether a child took longer than its limit and was killed.
pub(crate) fn any_timed_out() -> bool {
    TIMED_OUT.load(Ordering::Relaxed)
}

/// How a child ended.
pub(crate) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It took longer than the limit and was killed.
    TimedOut,
    /// The user asked the lab to stop, so it was killed.
    Interrupted,
}

/// A child that has ended, and its output.
pub(crate) struct FinishedChild {
    /// How it ended.
    pub(crate) end: End,
    /// Its standard output.
    pub(crate) stdout: Vec<u8>,
    /// Its standard error.
    pub(crate) stderr: Vec<u8>,
}

/// Runs `command` without input and with its output captured; kills it after `limit`.
///
/// # Errors
/// The command cannot be started or waited for.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<FinishedChild> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let end = wait(&mut child, limit)?;
    Ok(FinishedChild { end, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() })
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still useful.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<End> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        let end = match (began.elapsed() > limit, interrupt::asked()) {
            (true, _) => End::TimedOut,
            (_, true) => End::Interrupted,
            _ => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
                continue;
            }
        };
        TIMED_OUT.fetch_or(matches!(end, End::TimedOut), Ordering::Relaxed);
        end_group(child);
        child.wait()?;
        return Ok(end);
    }
}

/// Sends `signal` to `child`, which has not been waited for.
pub(crate) fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: the caller has not seen the child's end, so it has not been waited for and the number still belongs to it.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Kills the process group that `child`, which has not been waited for, leads.
pub(crate) fn end_group(child: &Child) {
    // SAFETY: the child was started as the leader of a group and has not been waited for, so the number still belongs to that group.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
}

#[cfg(test)]
mod tests;
