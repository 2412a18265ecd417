//! The process that is looked at: one that runs already, or a command that is started for it.

use crate::allocator::{preloading, selection};
use crate::file_pattern;
use crate::process::command_file::{self, Refusal};
use crate::process::live_process::{LiveProcess, Obstacle, VARIABLE};
use crate::process::{child, interrupt};
use crate::scratch_file::{ScratchFile, ScratchFolder};
use anyhow::{Context, Result};
use freestone::door::live::LiveState;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take to start under the library.
const START_LIMIT: Duration = Duration::from_secs(5);

/// How long a command may take to end when it is asked to.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A process, and what belongs to it if it was started here.
pub(crate) struct Target {
    process: LiveProcess,
    started: Option<Started>,
    /// The state that was seen last, which stays when the process has gone.
    last: Option<Box<LiveState>>,
}

/// A command that was started here.
struct Started {
    child: Child,
    ended: Option<ExitStatus>,
    /// What it wrote while the terminal was in use: standard output and standard error. It leads a process group then.
    output: Option<[ScratchFile; 2]>,
    /// The folder of the pages of the command and its children. What a child still has open goes with its process.
    _pages: ScratchFolder,
}

impl Target {
    /// The process `pid`.
    ///
    /// # Errors
    /// It keeps no statistics that can be read.
    pub(crate) fn attach(pid: u32) -> Result<Self> {
        Ok(Self { process: LiveProcess::attach(pid)?, started: None, last: None })
    }

    /// Starts a command under Freestone. `keeps_output`: what it writes is shown when the view has ended; else it goes to standard error.
    ///
    /// # Errors
    /// The command or the library cannot be found, or the library is not in the process.
    pub(crate) fn start(command: &[OsString], keeps_output: bool) -> Result<Self> {
        let (program, arguments) = command.split_first().context("no command is given")?;
        let path = command_file::find(program)?;
        let allocator = selection::select_one("freestone")?;
        let mut start = Command::new(&path);
        start.arg0(program).args(arguments);
        allocator.preload().apply(&mut start);
        let pages = ScratchFolder::new("live")?;
        start.env(VARIABLE, file_pattern::in_folder(pages.path(), "%p.live"));
        let output = if keeps_output { Some([ScratchFile::new("stdout")?, ScratchFile::new("stderr")?]) } else { None };
        match &output {
            Some([stdout, stderr]) => {
                start.stdin(Stdio::null()).stdout(File::create(stdout.path())?).stderr(File::create(stderr.path())?);
                // No key of the terminal reaches it then: all that it started is ended with it.
                start.process_group(0);
            }
            None => {
                start.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
            }
        }
        let child = start.spawn().with_context(|| format!("cannot start {}", path.display()))?;
        let mut started = Started { child, ended: None, output, _pages: pages };
        match started.process() {
            Ok(process) => Ok(Self { process, started: Some(started), last: None }),
            Err(error) => {
                started.end();
                started.pass_output_on();
                Err(match preloading::obstacle(&path) {
                    Some(obstacle) => error.context(format!("{}: {obstacle}", path.display())),
                    None => error,
                })
            }
        }
    }

    /// Its number and name.
    pub(crate) fn title(&self) -> (u32, &str) {
        (self.process.pid, &self.process.name)
    }

    /// The newest state there is; `None` before the first.
    pub(crate) fn state(&mut self) -> Option<&LiveState> {
        if let Some(state) = self.process.state() {
            self.last = Some(state);
        }
        self.last.as_deref()
    }

    /// How it ended, in words; `None` while it runs.
    pub(crate) fn end(&mut self) -> Option<String> {
        if let Some(started) = &mut self.started {
            return started.status().map(|status| match status.code() {
                Some(code) => format!("ended with status {code}"),
                None => format!("ended by signal {}", status.signal().unwrap_or(0)),
            });
        }
        if self.process.is_running() {
            return None;
        }
        Some("has ended".into())
    }

    /// Looks for the page again: a process that runs another program has a new one.
    pub(crate) fn attach_again(&mut self) {
        if let Ok(process) = LiveProcess::attach(self.process.pid) {
            self.process = process;
        }
    }

    /// Ends what was started here: `now`, or waits for its end. Passes its output on, and returns its exit status as shells give it; 0 if it was ended
    /// here.
    ///
    /// # Errors
    /// The command cannot be waited for.
    pub(crate) fn finish(mut self, now: bool) -> Result<u8> {
        let Some(started) = &mut self.started else { return Ok(0) };
        let is_ended_here = now && started.status().is_none();
        let status = if now { started.end() } else { Some(started.child.wait()?) };
        started.pass_output_on();
        if is_ended_here {
            return Ok(0);
        }
        Ok(status.map_or(1, of_shells).clamp(0, 255) as u8)
    }
}

/// The exit status that a shell gives.
fn of_shells(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Started {
    fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits until the command keeps statistics.
    fn process(&mut self) -> Result<LiveProcess> {
        let began = Instant::now();
        loop {
            let obstacle = match LiveProcess::attach(self.child.id()) {
                Ok(process) => return Ok(process),
                Err(obstacle) => obstacle,
            };
            if let Some(status) = self.status() {
                let message = format!("the command ended ({status}) before it could be looked at");
                return Err(Refusal::after_the_command(of_shells(status), message).into());
            }
            // There is no such process any more when it is about to end: its status comes.
            let may_still_come =
                matches!(obstacle, Obstacle::NoLibrary(..) | Obstacle::NoPage(..) | Obstacle::NoProcess(..));
            if !may_still_come || interrupt::asked() || began.elapsed() > START_LIMIT {
                return Err(obstacle.into());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks the command to end, and the processes of its group if it leads one, and ends it if it does not. Returns how it ended.
    fn end(&mut self) -> Option<ExitStatus> {
        let began = Instant::now();
        let send = if self.output.is_some() { child::send_to_group } else { child::send };
        if self.status().is_none() {
            send(&self.child, libc::SIGTERM);
        }
        while self.status().is_none() && began.elapsed() < END_LIMIT {
            thread::sleep(Duration::from_millis(5));
        }
        if self.status().is_none() {
            send(&self.child, libc::SIGKILL);
            self.ended = self.child.wait().ok();
        }
        self.ended
    }

    fn pass_output_on(&self) {
        let Some([stdout, stderr]) = &self.output else { return };
        // The reader may be gone; the exit status counts all the same.
        let _ = copy(stdout, &mut io::stdout());
        let _ = copy(stderr, &mut io::stderr());
    }
}

fn copy(from: &ScratchFile, to: &mut impl io::Write) -> io::Result<u64> {
    io::copy(&mut fs::File::open(from.path())?, to)
}
