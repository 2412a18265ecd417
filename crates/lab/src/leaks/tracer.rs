//! Runs a command under `ptrace`, and holds each of its processes at its end, so that its memory can be read.
//!
//! The kernel stops a thread for its tracer when the thread begins or ends, and when its process starts another program; between these stops the
//! command runs at full speed.
//!
//! ```text
//!  a thread ends        one `exit` while others go on    its stack is noted, and it goes on to its end
//!                       the process ends                 it is held
//!  all are held         the process is examined          they all go on
//! ```
//!
//! A process that a signal stops stays stopped until it gets SIGCONT, as without a tracer.
//!
//! A copy of a process (`fork`) that ends without having started another program is not examined: what its parent's other threads refer to is not
//! referred to in the copy.
//!
//! # Safety
//! Requests to the kernel about threads that are stopped for this process; they carry numbers, or places in locals that live through the call.
#![allow(unsafe_code)]

use crate::leaks::stopped::{self, FormerStack, StoppedProcess, StoppedThread};
use crate::process::{interrupt, proc_file, threads};
use crate::symbols::mapping::Mapping;
use anyhow::{Result, bail};
use libc::{c_int, c_long};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io, ptr, thread};

/// What the kernel is asked to stop the command for until its program has started. When this process dies, the command does.
const FIRST_STOPS: c_int = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;

/// And from then on.
const STOPS: c_int = FIRST_STOPS
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK;

/// The signals that stop a process until it gets SIGCONT.
const STOPPING: [c_int; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// How long a process may take until all of its threads are held.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// Shortest and longest pause between two looks for stops.
const PAUSES: (Duration, Duration) = (Duration::from_micros(30), Duration::from_millis(2));

/// A process that this one traces.
#[derive(Default)]
struct Process {
    /// Whether it has started a program, and is not a copy of another.
    has_program: bool,
    /// Threads that are on their way out with the whole process, and stopped.
    held: Vec<StoppedThread>,
    held_since: Option<Instant>,
    former_stacks: Vec<FormerStack>,
}

/// A command and its processes.
pub(crate) struct Tracer {
    command: i32,
    /// The process of each thread.
    threads: BTreeMap<i32, i32>,
    processes: BTreeMap<i32, Process>,
    /// The exit status of the command, when it has ended.
    exit: Option<i32>,
}

impl Tracer {
    /// Starts a command, whose first stop is at the start of its program.
    ///
    /// # Errors
    /// The command cannot be started, or must not be traced.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let command = spawn_traced(command).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => anyhow::anyhow!(
                "the command cannot be traced, which finding leaks needs: the kernel refuses; in a container, allow ptrace \
                 (--cap-add SYS_PTRACE), and see /proc/sys/kernel/yama/ptrace_scope"
            ),
            _ => anyhow::anyhow!("the command cannot be started: {error}"),
        })?;
        let program = Process { has_program: true, ..Process::default() };
        Ok(Self {
            command,
            threads: BTreeMap::from([(command, command)]),
            processes: BTreeMap::from([(command, program)]),
            exit: None,
        })
    }

    /// Runs the command to its end, and calls `examine` with each of its processes when that ends. Returns the exit status of the command, or 128
    /// and the number of the signal that ended it.
    ///
    /// # Errors
    /// The kernel refuses to tell of its stops.
    pub(crate) fn run(&mut self, mut examine: impl FnMut(&StoppedProcess)) -> Result<i32> {
        let mut pause = PAUSES.0;
        loop {
            for signal in interrupt::pending_for_the_command() {
                if self.exit.is_none() {
                    // SAFETY: the command has not been waited for, so the number still belongs to it.
                    unsafe { libc::kill(self.command, signal) };
                }
            }
            let mut status = 0;
            // SAFETY: the local can be written, and the call waits for children of this process only.
            let thread = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG | libc::__WALL) };
            if thread > 0 {
                self.stopped_or_ended(thread, status, &mut examine);
                pause = PAUSES.0;
            } else if thread == 0 {
                self.give_up_on_the_slow();
                thread::sleep(pause);
                pause = (pause * 2).min(PAUSES.1);
            } else {
                let error = io::Error::last_os_error();
                match (error.raw_os_error(), self.exit) {
                    (Some(libc::EINTR), _) => {}
                    (Some(libc::ECHILD), Some(exit)) => return Ok(exit),
                    _ => bail!("the command cannot be waited for: {error}"),
                }
            }
        }
    }

    fn stopped_or_ended(&mut self, thread: i32, status: c_int, examine: &mut impl FnMut(&StoppedProcess)) {
        if !libc::WIFSTOPPED(status) {
            self.ended(thread, status, examine);
            return;
        }
        let process = *self.threads.entry(thread).or_insert_with(|| process_of(thread));
        match status >> 16 {
            libc::PTRACE_EVENT_EXEC => {
                set_options(thread);
                let process = self.processes.entry(process).or_default();
                *process = Process { has_program: true, ..Process::default() };
                resume(thread, 0);
            }
            libc::PTRACE_EVENT_EXIT => self.on_way_out(thread, process, examine),
            // The tracer's own stops have events: any signal is the command's, a trap as well.
            0 => resume(thread, libc::WSTOPSIG(status)),
            libc::PTRACE_EVENT_STOP if STOPPING.contains(&libc::WSTOPSIG(status)) => leave_stopped(thread),
            _ => resume(thread, 0),
        }
    }

    /// A thread is about to end.
    fn on_way_out(&mut self, thread: i32, number: i32, examine: &mut impl FnMut(&StoppedProcess)) {
        let process = self.processes.entry(number).or_default();
        let Ok(registers) = StoppedThread::read(thread) else { return resume(thread, 0) };
        if !process.has_program {
            return resume(thread, 0);
        }
        let is_alone = registers.system_call == libc::SYS_exit
            && threads::of(number).iter().filter(|other| threads::is_alive(number, **other)).count() > 1;
        if is_alone && process.held.is_empty() {
            process.former_stacks.extend(stack_of(&registers));
            return resume(thread, 0);
        }
        process.held_since.get_or_insert_with(Instant::now);
        process.held.push(registers);
        self.examine_if_all_are_held(number, examine);
    }

    fn examine_if_all_are_held(&mut self, number: i32, examine: &mut impl FnMut(&StoppedProcess)) {
        let Some(process) = self.processes.get_mut(&number).filter(|process| !process.held.is_empty()) else { return };
        let is_held = |thread: &i32| process.held.iter().any(|held| held.number == *thread);
        if threads::of(number).iter().any(|thread| !is_held(thread) && threads::is_alive(number, *thread)) {
            return;
        }
        let threads = std::mem::take(&mut process.held);
        process.held_since = None;
        let stopped =
            StoppedProcess { pid: number, threads, former_stacks: std::mem::take(&mut process.former_stacks) };
        examine(&stopped);
        stopped.threads.iter().for_each(|thread| resume(thread.number, 0));
    }

    /// Lets go of processes some of whose threads do not come to their end: they start another program, which ends the threads but not the
    /// process.
    fn give_up_on_the_slow(&mut self) {
        for (&number, process) in &mut self.processes {
            let Some(since) = process.held_since else { continue };
            let in_exec = |thread: &i32| {
                system_call_of(number, *thread)
                    .is_some_and(|call| call == libc::SYS_execve || call == libc::SYS_execveat)
            };
            if since.elapsed() > LONGEST_HOLD || threads::of(number).iter().any(in_exec) {
                process.held_since = None;
                process.held.drain(..).for_each(|thread| resume(thread.number, 0));
            }
        }
    }

    fn ended(&mut self, thread: i32, status: c_int, examine: &mut impl FnMut(&StoppedProcess)) {
        let process = self.threads.remove(&thread).unwrap_or(thread);
        if thread == self.command {
            let killed = libc::WIFSIGNALED(status);
            self.exit = Some(if killed { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) });
        }
        self.examine_if_all_are_held(process, examine);
        if thread == process {
            self.processes.remove(&process);
        }
    }
}

/// Starts a command that the calling thread traces, and returns its number. The child says that number and waits until it is traced, while another
/// thread waits for its program to start.
fn spawn_traced(command: &mut Command) -> io::Result<i32> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let (end, other_end) = (theirs.as_raw_fd(), ours.as_raw_fd());
    let wait_for_the_tracer = move || {
        let number = std::process::id().to_ne_bytes();
        let mut error = [0; 4];
        // SAFETY: the child has the descriptor until it starts its program, and does not use it: so it notices if this process has ended.
        unsafe { libc::close(other_end) };
        // SAFETY: the local can be read.
        unsafe { libc::write(end, number.as_ptr().cast(), number.len()) };
        // SAFETY: the local can be written.
        let n_read = unsafe { libc::read(end, error.as_mut_ptr().cast(), error.len()) };
        match (n_read, i32::from_ne_bytes(error)) {
            (4, 0) => Ok(()),
            (4, error) => Err(io::Error::from_raw_os_error(error)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: between fork and exec the closure makes system calls only, which is async-signal-safe.
    unsafe { command.pre_exec(wait_for_the_tracer) };
    let spawned = thread::scope(|scope| {
        // Its end of the stream is closed with it, also if there is no child.
        let spawned = scope.spawn(move || (command.spawn(), theirs).0);
        let mut number = [0; 4];
        if ours.read_exact(&mut number).is_ok() {
            let traced = stopped::seize(i32::from_ne_bytes(number), FIRST_STOPS);
            let error = traced.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM));
            // If it cannot be written, there is no child any more, which the other thread says.
            let _ = ours.write_all(&error.to_ne_bytes());
        }
        spawned.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    spawned.map(|child| child.id() as i32)
}

/// The process that a thread belongs to.
fn process_of(thread: i32) -> i32 {
    let status = proc_file::read(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(thread)
}

/// The system call that a thread waits in.
fn system_call_of(process: i32, thread: i32) -> Option<c_long> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The stack of a thread that is about to end.
fn stack_of(thread: &StoppedThread) -> Option<FormerStack> {
    let maps = proc_file::read(format!("/proc/{}/maps", thread.number)).ok()?;
    let has_stack = |mapping: &Mapping| (mapping.start..mapping.end).contains(&thread.stack_pointer);
    let mapping = Mapping::parse_all(&maps).into_iter().find(has_stack)?;
    Some(FormerStack { range: (mapping.start, mapping.end), thread_pointer: thread.thread_pointer })
}

fn set_options(thread: i32) {
    // SAFETY: the thread is stopped for this process, and the request carries a number.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, ptr::null_mut::<libc::c_void>(), STOPS as c_long) };
}

/// Lets a thread whose process was stopped by a signal stay so until it gets another one.
fn leave_stopped(thread: i32) {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: the thread is stopped for this process, or has been killed meanwhile, and then the kernel refuses; the request carries a number.
    unsafe { libc::ptrace(libc::PTRACE_LISTEN, thread, nothing, nothing) };
}

/// Lets a stopped thread go on, with a signal or, with 0, without one.
fn resume(thread: i32, signal: c_int) {
    // SAFETY: the thread is stopped for this process, or has been killed meanwhile, and then the kernel refuses; the request carries a number.
    unsafe { libc::ptrace(libc::PTRACE_CONT, thread, ptr::null_mut::<libc::c_void>(), c_long::from(signal)) };
}
