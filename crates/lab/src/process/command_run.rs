//! Runs any command under an allocator, through the launcher: the small process that measures it.

use crate::process::child::{self, End};
use crate::process::command_file::Refusal;
use crate::process::command_record::CommandRecord;
use crate::process::preload::Preload;
use crate::process::{interrupt, own_executable};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{self, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Lines of standard error that a captured run keeps.
const KEPT_LINES: usize = 3;

/// Bytes of standard output that are read at once.
const PIECE: usize = 1 << 16;

/// How often an attached run looks for signals and for the end of the command.
const POLL: Duration = Duration::from_millis(2);

/// One run with its output captured.
pub(crate) struct CommandRun {
    /// What the kernel counted.
    pub(crate) record: CommandRecord,
    /// Digest of standard output.
    pub(crate) output_digest: u64,
    /// The last lines of standard error.
    pub(crate) last_lines: String,
}

/// What a captured run finds.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The file that it reads; `None` for no input.
    pub(crate) input: Option<&'a Path>,
    /// The folder to run in; `None` for the lab's own.
    pub(crate) folder: Option<&'a Path>,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// Where a launcher writes its record: a pipe, because the disk may be full.
pub(crate) struct RecordPipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl RecordPipe {
    /// A pipe for one launcher.
    ///
    /// # Errors
    /// The kernel has none.
    pub(crate) fn new() -> Result<Self> {
        let (reader, writer) = io::pipe().context("no pipe for the measuring process's report can be made")?;
        Ok(Self { reader, writer })
    }

    /// The name by which the launcher opens it. It does not inherit it, so nor does the command.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.writer.as_raw_fd())
    }

    /// Reads the record of a launcher that has ended.
    ///
    /// # Errors
    /// There is no record, or it says that the command could not be started.
    pub(crate) fn read(self) -> Result<CommandRecord> {
        drop(self.writer);
        record_in(&io::read_to_string(self.reader).context("the measuring process's report cannot be read")?)
    }
}

/// The launcher for `arguments` under `preload`, not yet started; it writes its record to `report`. If `watch` is set, it also checks that
/// the preloaded library is mapped when the command exits.
///
/// # Errors
/// The path of the lab's executable is unknown.
pub(crate) fn launcher(
    arguments: &[OsString],
    preload: Preload<'_>,
    report: &RecordPipe,
    watch: bool,
) -> Result<Command> {
    let mut command = Command::new(own_executable::path()?);
    let watch = if watch { "1" } else { "0" };
    command.arg("launch").arg(report.path()).arg(preload.library_argument()).arg(watch).arg("--").args(arguments);
    preload.apply_environment(&mut command);
    Ok(command)
}

/// The record that a launcher has written.
fn record_in(text: &str) -> Result<CommandRecord> {
    if text.is_empty() {
        bail!("the measuring process left no report");
    }
    let record: CommandRecord = serde_json::from_str(text).context("the measuring process left a damaged report")?;
    match record.start_error {
        Some(error) => Err(Refusal::new(record.exit as u8, error).into()),
        None => Ok(record),
    }
}

/// Runs `arguments` with its output captured.
///
/// # Errors
/// The command cannot be started, or takes longer than its limit, or its input cannot be read.
pub(crate) fn run_captured(
    arguments: &[OsString],
    preload: Preload<'_>,
    surroundings: Surroundings<'_>,
    watch: bool,
) -> Result<CommandRun> {
    let report = RecordPipe::new()?;
    let mut command = launcher(arguments, preload, &report, watch)?;
    let Surroundings { input, folder, limit } = surroundings;
    folder.map(|folder| command.current_dir(folder));
    command.stdin(match input {
        Some(file) => File::open(file).with_context(|| format!("{} cannot be read", file.display()))?.into(),
        None => Stdio::null(),
    });
    let finished =
        child::run_and_read(&mut command, limit, digest).context("the measuring process could not be started")?;
    let seconds = limit.as_secs();
    match finished.end {
        End::Exited(_) => {}
        End::TimedOut if report.read().is_ok() => bail!(
            "has ended, but a process that it started held its output for more than {seconds} s; redirect that process's output, or raise \
             --timeout"
        ),
        End::TimedOut => bail!("took longer than {seconds} s and was ended; raise --timeout"),
        End::Interrupted => bail!("interrupted"),
    }
    Ok(CommandRun {
        record: report.read()?,
        output_digest: finished.stdout,
        last_lines: last_lines(&String::from_utf8_lossy(&finished.stderr)),
    })
}

/// A digest of what a pipe holds. It is read in pieces of one size, so that the digest depends on nothing else.
fn digest(mut pipe: ChildStdout) -> u64 {
    let mut digest = DefaultHasher::new();
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        // What was read before an error counts.
        let _ = pipe.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        digest.write(&piece);
        if piece.len() < PIECE {
            return digest.finish();
        }
        piece.clear();
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(KEPT_LINES)..].join(" | ")
}

/// Runs `arguments` on this terminal, with the lab's input and output, and passes signals on to it. Calls `while_running` with the
/// launcher's process number every few milliseconds.
///
/// # Errors
/// The command cannot be started.
pub(crate) fn run_attached(
    arguments: &[OsString],
    preload: Preload<'_>,
    mut while_running: impl FnMut(u32),
) -> Result<CommandRecord> {
    let report = RecordPipe::new()?;
    let mut command = launcher(arguments, preload, &report, false)?;
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child =
        interrupt::while_blocked(|| command.spawn()).context("the measuring process could not be started")?;
    loop {
        interrupt::pending_for_the_command().for_each(|signal| child::send(&child, signal));
        if child.try_wait().context("the measuring process could not be waited for")?.is_some() {
            return report.read();
        }
        while_running(child.id());
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_last_lines_of_standard_error_are_kept_in_order() {
        assert_eq!(last_lines("1\n2\n3\n4\n5\n"), "3 | 4 | 5");
        assert_eq!(last_lines("alone"), "alone");
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn a_record_that_is_missing_or_damaged_or_of_a_refused_command_is_an_error() {
        let error = |text: &str| {
            let report = RecordPipe::new().unwrap();
            fs::write(report.path(), text).unwrap();
            report.read().unwrap_err()
        };
        assert!(error("").to_string().starts_with("the measuring process left no report"));
        assert!(format!("{:#}", error("{")).starts_with("the measuring process left a damaged report"));
        let refused = CommandRecord::not_started(127, "no such command".into());
        let error = error(&serde_json::to_string(&refused).unwrap());
        assert_eq!((error.to_string().as_str(), error.downcast::<Refusal>().unwrap().status), ("no such command", 127));
    }
}
