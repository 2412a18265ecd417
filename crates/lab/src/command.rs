//! Runs any command under an allocator, through the small process that measures it.

use crate::allocator::Allocator;
use crate::child::{self, End};
use crate::executable::CannotRun;
use crate::launch::Launched;
use crate::{bench, checkout, interrupt};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What one run of a command came to.
pub(crate) struct Ran {
    /// What the kernel counted.
    pub(crate) launched: Launched,
    /// Digest of standard output, where it was captured.
    pub(crate) output: u64,
    /// The end of standard error, where it was captured.
    pub(crate) said: String,
}

/// A file of this process's own in the system's temporary folder, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A name nobody else uses.
    pub(crate) fn new(what: &str) -> Self {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("freestone-{what}-{}-{serial}", std::process::id())))
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The file may never have been written.
        let _ = fs::remove_file(&self.0);
    }
}

/// The measuring process for `arguments` under `allocator`, not yet started.
pub(crate) fn launcher(arguments: &[OsString], allocator: &Allocator, report: &Path, watch: bool) -> Result<Command> {
    let mut command = Command::new(checkout::own_executable()?);
    let preload = allocator.library.as_ref().map_or_else(|| OsString::from("-"), OsString::from);
    command.arg("launch").arg(report).arg(preload).arg(if watch { "1" } else { "0" }).arg("--").args(arguments);
    command.envs(allocator.environment.iter().map(|(key, value)| (key, value)));
    Ok(command)
}

/// What the measuring process wrote.
///
/// # Errors
/// Nothing readable, or the command could not be started.
pub(crate) fn read_report(report: &Path) -> Result<Launched> {
    let text = fs::read_to_string(report).context("the measuring process left no report")?;
    let launched: Launched = serde_json::from_str(&text).context("the measuring process left a damaged report")?;
    match launched.start_error {
        Some(error) => Err(CannotRun::new(launched.exit as u8, error).into()),
        None => Ok(launched),
    }
}

/// Runs `arguments` with its output captured.
///
/// # Errors
/// It cannot be started, or takes longer than `limit`.
pub(crate) fn run_captured(arguments: &[OsString], allocator: &Allocator, limit: Duration, watch: bool) -> Result<Ran> {
    let report = Scratch::new("launch");
    let mut command = launcher(arguments, allocator, report.path(), watch)?;
    let finished = child::run(&mut command, limit).context("the measuring process could not be started")?;
    match finished.end {
        End::Exited(_) => {}
        End::TimedOut => bail!("took longer than {} s and was ended; raise --timeout", limit.as_secs()),
        End::Interrupted => bail!("interrupted"),
    }
    let mut digest = DefaultHasher::new();
    finished.stdout.hash(&mut digest);
    let said = String::from_utf8_lossy(&finished.stderr);
    let said: Vec<&str> = said.lines().rev().take(3).collect();
    Ok(Ran {
        launched: read_report(report.path())?,
        output: digest.finish(),
        said: said.into_iter().rev().collect::<Vec<_>>().join(" | "),
    })
}

/// Runs `arguments` on this terminal, with its input and output, passes signals on to it, and calls `while_running` again and again meanwhile.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run_attached(
    arguments: &[OsString],
    allocator: &Allocator,
    mut while_running: impl FnMut(u32),
) -> Result<Launched> {
    let report = Scratch::new("launch");
    let mut command = launcher(arguments, allocator, report.path(), false)?;
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child =
        interrupt::while_blocked(|| command.spawn()).context("the measuring process could not be started")?;
    loop {
        interrupt::kept().for_each(|signal| child::send(&child, signal));
        if child.try_wait().context("the measuring process could not be waited for")?.is_some() {
            return read_report(report.path());
        }
        while_running(child.id());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The command as one would type it.
pub(crate) fn shown(arguments: &[OsString]) -> String {
    let quote = |argument: &OsString| {
        let text = argument.to_string_lossy();
        let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+@%".contains(letter);
        let text = text.replace('\n', "↵");
        if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Runs a workload-like program of the lab itself, such as the demo, and returns what it printed.
///
/// # Errors
/// It cannot be started, fails, or takes longer than `limit`.
pub(crate) fn run_own(arguments: &[&str], allocator: &Allocator, limit: Duration) -> Result<Vec<u8>> {
    let mut command = Command::new(checkout::own_executable()?);
    command.args(arguments);
    bench::prepare(&mut command, allocator);
    let finished = child::run(&mut command, limit).context("the lab could not start itself")?;
    match finished.end {
        End::Exited(status) if status.success() => Ok(finished.stdout),
        End::Exited(status) => bail!("ended with {status}: {}", String::from_utf8_lossy(&finished.stderr).trim()),
        End::TimedOut => bail!("took longer than {} s and was ended", limit.as_secs()),
        End::Interrupted => bail!("interrupted"),
    }
}
