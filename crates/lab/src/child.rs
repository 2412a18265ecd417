//! Runs a child to its end with its output captured, within a time limit, and so that Ctrl-C reaches the lab and not the child.
//!
//! The child leads a process group of its own: when time is up, everything it started is ended with it.
//!
//! # Safety
//! `kill` with the number of a child that has not been waited for, or of the group it leads.
#![allow(unsafe_code)]

use crate::interrupt;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How a child ended.
pub(crate) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It took longer than allowed and was ended.
    TimedOut,
    /// The user asked to stop.
    Interrupted,
}

/// A child that ended, and what it wrote.
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) end: End,
    /// Its standard output.
    pub(crate) stdout: Vec<u8>,
    /// Its standard error.
    pub(crate) stderr: Vec<u8>,
}

/// Runs `command` with no input and captured output.
///
/// # Errors
/// It cannot be started, or waited for.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Finished> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let end = wait(&mut child, limit)?;
    Ok(Finished { end, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() })
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is still worth having.
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
        end_group(child);
        child.wait()?;
        return Ok(end);
    }
}

/// Sends `signal` to a child that the caller has not found ended.
pub(crate) fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: only the owner of `child` waits for it, and has not, so the number still means it.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Ends the child's process group.
pub(crate) fn end_group(child: &Child) {
    // SAFETY: the child leads its own group and has not been waited for, so the number still means it.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
}
