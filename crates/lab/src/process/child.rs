//! Runs a child to its end with its output captured and within a time limit.
//!
//! The child leads a process group of its own. So Ctrl-C reaches the lab and not the child, and when the time is up, all processes that the
//! child started are killed with it. The run of a child ends when its output does: processes that it started may hold that longer than it lives.
//!
//! # Safety
//! `ioctl` writes to a local; `kill` and `waitid` are called with the number of a child that has not been waited for, or of the group that it leads.
#![allow(unsafe_code)]

use crate::process::interrupt;
use std::io::{self, IsTerminal, Read};
use std::mem;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of standard error that are kept: the last ones.
const KEPT_ERRORS: usize = 1 << 20;

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
    /// It, or a process that it started and that held its output, took longer than the limit; they were killed.
    TimedOut,
    /// The user asked the lab to stop, so it was killed.
    Interrupted,
}

/// A child that has ended, and its output, which is empty if it was killed.
pub(crate) struct FinishedChild<T = Vec<u8>> {
    /// How it ended.
    pub(crate) end: End,
    /// Its standard output, or what was made of it.
    pub(crate) stdout: T,
    /// The end of its standard error.
    pub(crate) stderr: Vec<u8>,
}

/// Runs `command` without input and with its output captured; kills it after `limit`.
///
/// # Errors
/// The command cannot be started or waited for.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<FinishedChild> {
    let whole = |mut pipe: ChildStdout| {
        let mut bytes = Vec::new();
        // What was read before an error is still useful.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    };
    run_and_read(command.stdin(Stdio::null()), limit, whole)
}

/// Runs `command` with the input that it has, while `read` reads its standard output to the end; kills it after `limit`.
///
/// # Errors
/// The command cannot be started or waited for.
pub(crate) fn run_and_read<T: Default + Send + 'static>(
    command: &mut Command,
    limit: Duration,
    read: impl FnOnce(ChildStdout) -> T + Send + 'static,
) -> io::Result<FinishedChild<T>> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let stdout = child.stdout.take().map(|pipe| thread::spawn(|| read(pipe)));
    let stderr = child.stderr.take().map(|pipe| thread::spawn(|| last_of(pipe)));
    let end = wait(&mut child, limit, || is_over(&stdout) && is_over(&stderr))?;
    Ok(FinishedChild { end, stdout: result(stdout), stderr: result(stderr) })
}

/// The last bytes of a pipe.
fn last_of(mut pipe: ChildStderr) -> Vec<u8> {
    let mut bytes = Vec::new();
    while pipe.by_ref().take(KEPT_ERRORS as u64).read_to_end(&mut bytes).is_ok_and(|read| read > 0) {
        bytes.drain(..bytes.len().saturating_sub(KEPT_ERRORS));
    }
    bytes
}

fn is_over<T>(reader: &Option<JoinHandle<T>>) -> bool {
    reader.as_ref().is_none_or(JoinHandle::is_finished)
}

/// What a reader has read; nothing if a process that was not killed still holds its pipe.
fn result<T: Default>(reader: Option<JoinHandle<T>>) -> T {
    reader.filter(JoinHandle::is_finished).and_then(|reader| reader.join().ok()).unwrap_or_default()
}

/// Waits until the child has ended and all of its output `is_read`.
fn wait(child: &mut Child, limit: Duration, is_read: impl Fn() -> bool) -> io::Result<End> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if has_ended(child)? && is_read() {
            return child.wait().map(End::Exited);
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

/// Whether `child` has ended. It is not waited for: its number stays that of the group that it leads.
///
/// # Errors
/// It has been waited for.
pub(crate) fn has_ended(child: &Child) -> io::Result<bool> {
    // SAFETY: all-zero is a valid `siginfo_t`.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the local can be written, and the child has not been waited for.
    if unsafe { libc::waitid(libc::P_PID, child.id(), &mut info, options) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call fills the number in, or leaves it 0 if the child has not ended.
    Ok(unsafe { info.si_pid() } != 0)
}

/// Whether the lab's own standard input, which no child reads, has something to read that nobody types.
pub(crate) fn input_is_waiting() -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes a number to the local.
    let is_known = unsafe { libc::ioctl(libc::STDIN_FILENO, libc::FIONREAD, &mut bytes) } == 0;
    is_known && bytes > 0 && !io::stdin().is_terminal()
}

/// Sends `signal` to `child`, which has not been waited for.
pub(crate) fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: the caller has not seen the child's end, so it has not been waited for and the number still belongs to it.
    unsafe { libc::kill(child.id() as i32, signal) };
}

/// Kills the process group that `child`, which has not been waited for, leads.
pub(crate) fn end_group(child: &Child) {
    send_to_group(child, libc::SIGKILL);
}

/// Sends `signal` to the process group that `child`, which has not been waited for, leads.
pub(crate) fn send_to_group(child: &Child, signal: libc::c_int) {
    // SAFETY: the child was started as the leader of a group and has not been waited for, so the number still belongs to that group.
    unsafe { libc::kill(-(child.id() as i32), signal) };
}

#[cfg(test)]
mod tests;
