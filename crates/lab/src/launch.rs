//! `freestone launch REPORT PRELOAD WATCH -- CMD…`: the small process between the lab and a measured command.
//!
//! The kernel starts a process's `ru_maxrss` at the size of the one that spawned it. The lab is large, so it never spawns what it measures: this
//! process, which has touched next to nothing, does, waits for it with `wait4`, and writes what the kernel counted to REPORT.
//! PRELOAD (`-`: none) enters the environment of the command only.
//!
//! With WATCH = 1 the command is traced from exec to exit, and the libraries mapped at its exit are searched for PRELOAD: the proof that
//! the allocator was in the process, without a race. Tracing stops the command a few times, so such a run is not timed.
//!
//! # Safety
//! Calls of the C library with pointers to locals; between fork and exec only async-signal-safe calls are made.
#![allow(unsafe_code)]

use crate::workload::process_view::nanoseconds;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Instant;
use std::{fs, io, mem};

/// What the kernel counted of one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Launched {
    /// Exit status, or 128 + the signal that ended it.
    pub(crate) exit: i32,
    /// Why it could not be started.
    pub(crate) start_error: Option<String>,
    /// Wall-clock time from fork to exit.
    pub(crate) wall_ns: u64,
    /// Processor time in the program and the children it waited for.
    pub(crate) user_ns: u64,
    /// Processor time in the kernel.
    pub(crate) system_ns: u64,
    /// Page faults.
    pub(crate) minor_faults: u64,
    /// Largest resident size of the largest process.
    pub(crate) peak_rss_bytes: u64,
    /// Whether the preloaded library was mapped when the command exited; `None` when it was not watched.
    pub(crate) was_mapped: Option<bool>,
}

/// Runs the command and writes the report.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    let [report, preload, watch, separator, program, rest @ ..] = args else {
        eprintln!("freestone launch: internal command; use `freestone run -- CMD…`");
        return ExitCode::from(2);
    };
    debug_assert_eq!(separator, "--");
    let watch = watch == "1";
    let mut command = Command::new(program);
    command.args(rest);
    if preload != "-" {
        command.env("LD_PRELOAD", with_inherited(preload));
    }
    let launched = launch(command, watch.then(|| preload.to_string_lossy().into_owned()));
    let text = serde_json::to_string(&launched).unwrap_or_default();
    if let Err(error) = fs::write(report, text) {
        eprintln!("freestone launch: the report {} could not be written: {error}", report.display());
    }
    ExitCode::from(launched.exit.clamp(0, 255) as u8)
}

fn with_inherited(preload: &OsString) -> OsString {
    let mut all = preload.clone();
    if let Some(inherited) = std::env::var_os("LD_PRELOAD").filter(|inherited| !inherited.is_empty()) {
        all.push(":");
        all.push(inherited);
    }
    all
}

fn launch(mut command: Command, watched: Option<String>) -> Launched {
    let traced = watched.is_some();
    let prepare = move || {
        if traced {
            // SAFETY: asks to be traced by the parent; async-signal-safe.
            unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
        }
        Ok(())
    };
    // SAFETY: the closure calls only ptrace.
    unsafe { command.pre_exec(prepare) };
    let began = Instant::now();
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(&error),
    };
    // SAFETY: sets the disposition of a signal to "ignore": Ctrl-C is for the command, whose end is waited for.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let pid = child.id() as libc::pid_t;
    let mut was_mapped = watched.as_ref().map(|_| false);
    let (status, usage) = loop {
        // SAFETY: all-zero is a valid rusage; both can be written.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        let mut status = 0;
        // SAFETY: as above; the child is this process's own.
        let waited = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
        if waited < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return failed(&io::Error::last_os_error());
        }
        if waited == pid && libc::WIFSTOPPED(status) {
            if let Some(library) = &watched {
                let mapped = resume(pid, status, library);
                was_mapped = was_mapped.map(|before| before || mapped);
            }
        } else if waited == pid {
            break (status, usage);
        }
    };
    Launched {
        exit: if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) },
        start_error: None,
        wall_ns: began.elapsed().as_nanos() as u64,
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        peak_rss_bytes: usage.ru_maxrss as u64 * 1024,
        was_mapped,
    }
}

/// Lets a stopped command go on; whether `library` is mapped in it, when it stopped on its way out.
fn resume(pid: libc::pid_t, status: libc::c_int, library: &str) -> bool {
    let signal = libc::WSTOPSIG(status);
    let event = status >> 16;
    let options = libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_TRACEEXEC;
    let mapped = event == libc::PTRACE_EVENT_EXIT
        && fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(library));
    let deliver = if signal == libc::SIGTRAP { 0 } else { signal };
    // SAFETY: the child is stopped and traced by this process.
    unsafe {
        libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options);
        libc::ptrace(libc::PTRACE_CONT, pid, 0, deliver);
    }
    mapped
}

fn failed(error: &io::Error) -> Launched {
    let exit = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    Launched {
        exit,
        start_error: Some(error.to_string()),
        wall_ns: 0,
        user_ns: 0,
        system_ns: 0,
        minor_faults: 0,
        peak_rss_bytes: 0,
        was_mapped: None,
    }
}
