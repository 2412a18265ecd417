//! `freestone launch REPORT PRELOAD WATCH -- CMD…`: the small process between the lab and a measured command.
//!
//! The kernel starts a process's `ru_maxrss` at the size of the one that spawned it. The lab is large, so it never spawns what it measures: this
//! process, which has touched next to nothing, does, waits for it with `wait4`, and writes what the kernel counted to REPORT.
//! PRELOAD (`-`: none) enters the environment of the command only.
//!
//! It shares the process group of the lab and its command. What a terminal sends reaches the command by itself; what the lab sends, this process
//! passes on; signals from elsewhere are the lab's to answer.
//!
//! With WATCH = 1 the command is traced from exec to exit, and the libraries mapped at its exit are searched for PRELOAD: the proof that
//! the allocator was in the process, without a race. Tracing stops the command a few times, so such a run is not timed.
//!
//! # Safety
//! Calls of the C library with pointers to locals; between fork and exec only async-signal-safe calls are made.
#![allow(unsafe_code)]

mod program;

use crate::executable::CannotRun;
use crate::interrupt::Awaited;
use crate::workload::process_view::nanoseconds;
use program::Program;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs, io, mem};

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

impl Launched {
    /// How the command ended, in words; its exit status is given as a shell gives it.
    pub(crate) fn ending(&self) -> String {
        const NAMED: [(i32, &str); 11] = [
            (libc::SIGHUP, "SIGHUP"),
            (libc::SIGINT, "SIGINT"),
            (libc::SIGQUIT, "SIGQUIT"),
            (libc::SIGILL, "SIGILL"),
            (libc::SIGABRT, "SIGABRT"),
            (libc::SIGBUS, "SIGBUS"),
            (libc::SIGFPE, "SIGFPE"),
            (libc::SIGKILL, "SIGKILL"),
            (libc::SIGSEGV, "SIGSEGV"),
            (libc::SIGPIPE, "SIGPIPE"),
            (libc::SIGTERM, "SIGTERM"),
        ];
        match NAMED.iter().find(|(number, _)| self.exit == 128 + number) {
            Some((number, name)) => format!("ended by signal {number} ({name})"),
            None => format!("exit status {}", self.exit),
        }
    }
}

/// Runs the command and writes the report.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    let [report, preload, watch, separator, program, rest @ ..] = args else {
        eprintln!("freestone launch: internal command; use `freestone run -- CMD…`");
        return ExitCode::from(2);
    };
    debug_assert_eq!(separator, "--");
    let awaited = Awaited::block();
    if preload != "-" {
        // SAFETY: this process has one thread.
        unsafe { env::set_var("LD_PRELOAD", with_inherited(preload)) };
    }
    let watched = (watch == "1").then(|| preload.to_string_lossy().into_owned());
    let launched = match Program::find(program, rest) {
        Ok(program) => launch(program, watched.as_deref(), awaited),
        Err(refused) => not_started(&refused),
    };
    let text = serde_json::to_string(&launched).unwrap_or_default();
    if let Err(error) = fs::write(report, text) {
        eprintln!("freestone launch: the report {} could not be written: {error}", report.display());
    }
    ExitCode::from(launched.exit.clamp(0, 255) as u8)
}

fn with_inherited(preload: &OsString) -> OsString {
    let mut all = preload.clone();
    if let Some(inherited) = env::var_os("LD_PRELOAD").filter(|inherited| !inherited.is_empty()) {
        all.push(":");
        all.push(inherited);
    }
    all
}

fn launch(program: Program, watched: Option<&str>, awaited: Awaited) -> Launched {
    let lab = parent_id();
    let began = Instant::now();
    let pid = match program.start(watched.is_some(), awaited) {
        Ok(pid) => pid,
        Err(refused) => return not_started(&refused),
    };
    let mut was_mapped = watched.map(|_| false);
    let (status, usage) = loop {
        match wait(pid) {
            Ok(Some((status, _))) if libc::WIFSTOPPED(status) => {
                if let Some(library) = watched {
                    let mapped = resume(pid, status, library);
                    was_mapped = was_mapped.map(|before| before || mapped);
                }
            }
            Ok(Some(ended)) => break ended,
            Ok(None) => {
                if let Some(signal) = awaited.wait_for_one_from(lab) {
                    // SAFETY: the command has not been waited for, so the number is still its own.
                    unsafe { libc::kill(pid, signal) };
                }
            }
            Err(error) => {
                return not_started(&CannotRun::new(
                    CannotRun::NOT_RUNNABLE,
                    format!("it cannot be waited for: {error}"),
                ));
            }
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

/// What has become of the command: `None` while it runs on.
fn wait(pid: libc::pid_t) -> io::Result<Option<(libc::c_int, libc::rusage)>> {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    let mut status = 0;
    // SAFETY: both can be written; the child is this process's own.
    match unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) } {
        0 => Ok(None),
        waited if waited == pid => Ok(Some((status, usage))),
        _ => Err(io::Error::last_os_error()),
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

fn not_started(refused: &CannotRun) -> Launched {
    Launched {
        exit: refused.status.into(),
        start_error: Some(refused.to_string()),
        wall_ns: 0,
        user_ns: 0,
        system_ns: 0,
        minor_faults: 0,
        peak_rss_bytes: 0,
        was_mapped: None,
    }
}
