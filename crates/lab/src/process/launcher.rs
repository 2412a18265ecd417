//! `freestone launch REPORT PRELOAD WATCH -- CMD…`: the small process between the lab and a measured command.
//!
//! The kernel starts a process's `ru_maxrss` at the resident size of the process that spawned it. The lab is large, so it never spawns what
//! it measures. It starts this process instead, which has touched almost no memory: it spawns the command, waits for it with `wait4`, and
//! writes what the kernel counted to REPORT. PRELOAD (`-`: none) is put into the environment of the command only, before what the user preloads;
//! allocators that the user preloads are not in this process's environment any more.
//!
//! The lab, this process and the command share a process group. A signal from the terminal reaches the command directly; a signal from the
//! lab is passed on here; signals from other processes are ignored here, because the lab handles them.
//!
//! With WATCH = 1 the command is traced from exec to exit, and PRELOAD is looked up among the mappings it has at its exit: the proof that
//! the allocator was in the process, without a race. Tracing stops the command a few times, so such a run is not timed.
//!
//! # Safety
//! Calls of the C library with pointers to locals, on a child that this process has not waited for.
#![allow(unsafe_code)]

mod program_image;

use crate::process::command_file::Refusal;
use crate::process::command_record::CommandRecord;
use crate::process::interrupt::AwaitedSignals;
use crate::process::proc_file;
use crate::workload::own_process::Usage;
use program_image::Program;
use std::ffi::OsString;
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs, io, mem, ptr};

/// Runs the command and writes the record.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    let [report, preload, watch, separator, program, rest @ ..] = args else {
        eprintln!("freestone launch: internal command; use `freestone run -- CMD…`");
        return ExitCode::from(2);
    };
    debug_assert_eq!(separator, "--");
    let awaited = AwaitedSignals::block();
    if preload != "-" {
        // SAFETY: this process has one thread, so nothing reads the environment at the same time.
        unsafe { env::set_var("LD_PRELOAD", with_inherited(preload)) };
    }
    let watched = (watch == "1").then(|| preload.to_string_lossy().into_owned());
    let record = match Program::find(program, rest) {
        Ok(program) => launch(program, watched.as_deref(), awaited),
        Err(refusal) => not_started(&refusal),
    };
    let text = serde_json::to_string(&record).unwrap_or_default();
    if let Err(error) = fs::write(report, text) {
        eprintln!("freestone launch: the report {} could not be written: {error}", report.display());
    }
    ExitCode::from(record.exit.clamp(0, 255) as u8)
}

fn with_inherited(preload: &OsString) -> OsString {
    let mut all = preload.clone();
    if let Some(inherited) = env::var_os("LD_PRELOAD").filter(|inherited| !inherited.is_empty()) {
        all.push(":");
        all.push(inherited);
    }
    all
}

fn not_started(refusal: &Refusal) -> CommandRecord {
    CommandRecord::not_started(refusal.status.into(), refusal.to_string())
}

/// Starts the program, waits for its end, and passes signals on to it meanwhile. `watched` is the library to look for at its exit.
fn launch(program: Program, watched: Option<&str>, awaited: AwaitedSignals) -> CommandRecord {
    let lab = parent_id();
    let began = Instant::now();
    let pid = match program.start(watched.is_some(), awaited) {
        Ok(pid) => pid,
        Err(refusal) => return not_started(&refusal),
    };
    // If the kernel forbids tracing, there are no stops, and nothing is known.
    let mut was_mapped = None;
    let mut is_first_stop = true;
    let (status, usage) = loop {
        match wait(pid) {
            Ok(Some((status, _))) if libc::WIFSTOPPED(status) => {
                if let Some(library) = watched {
                    was_mapped = resume(pid, status, is_first_stop, library).or(was_mapped);
                    is_first_stop = false;
                }
            }
            Ok(Some(ended)) => break ended,
            Ok(None) => {
                if let Some(signal) = awaited.wait_for_one_from(lab) {
                    // SAFETY: the command has not been waited for, so the number still belongs to it.
                    unsafe { libc::kill(pid, signal) };
                }
            }
            Err(error) => {
                let why = format!("it cannot be waited for: {error}");
                return not_started(&Refusal::new(Refusal::NOT_RUNNABLE, why));
            }
        }
    };
    let wall_ns = began.elapsed().as_nanos() as u64;
    let peak_rss_bytes = usage.ru_maxrss as u64 * 1024;
    let context_switches = (usage.ru_nvcsw + usage.ru_nivcsw) as u64;
    let Usage { user_ns, system_ns, minor_faults } = Usage::from(usage);
    let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    CommandRecord {
        exit: signal.map_or_else(|| libc::WEXITSTATUS(status), |signal| 128 + signal),
        signal,
        start_error: None,
        wall_ns,
        user_ns,
        system_ns,
        minor_faults,
        context_switches,
        peak_rss_bytes,
        was_mapped,
        settled_bytes: None,
    }
}

/// The wait status of the command and what it used; `None` while it runs.
fn wait(pid: libc::pid_t) -> io::Result<Option<(libc::c_int, libc::rusage)>> {
    // SAFETY: all-zero is a valid `rusage`: it holds numbers only.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    let mut status = 0;
    // SAFETY: both locals can be written, and `pid` is a child of this process.
    match unsafe { libc::wait4(pid, &mut status, libc::WNOHANG, &mut usage) } {
        0 => Ok(None),
        waited if waited == pid => Ok(Some((status, usage))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets a stopped command continue. Returns whether `library` is mapped in it, if it stopped because it exits.
fn resume(pid: libc::pid_t, status: libc::c_int, is_first_stop: bool, library: &str) -> Option<bool> {
    let event = status >> 16;
    let mapped = (event == libc::PTRACE_EVENT_EXIT)
        .then(|| proc_file::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(library)));
    // The kernel's own stops are the first one, for exec, and those with an event; every other signal is the command's, a trap as well.
    let deliver = if is_first_stop || event != 0 { 0 } else { libc::WSTOPSIG(status) };
    let options = libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_TRACEEXEC;
    let no_address = ptr::null_mut::<libc::c_void>();
    // SAFETY: the child is traced by this process and stopped; this request takes numbers and uses no address.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, no_address, options as libc::c_long) };
    // SAFETY: as above: the child is still stopped.
    unsafe { libc::ptrace(libc::PTRACE_CONT, pid, no_address, libc::c_long::from(deliver)) };
    mapped
}
