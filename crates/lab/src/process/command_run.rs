//! Runs any command under an allocator, through the launcher: the small process that measures it.

use crate::process::child::{self, End};
use crate::process::command_file::Refusal;
use crate::process::command_record::CommandRecord;
use crate::process::preload::Preload;
use crate::process::{interrupt, own_executable};
use crate::scratch_file::ScratchFile;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
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

/// The launcher for `arguments` under `preload`, not yet started; it writes its record to `report`. If `watch` is set, it also checks that
/// the preloaded library is mapped when the command exits.
///
/// # Errors
/// The path of the lab's executable is unknown.
pub(crate) fn launcher(arguments: &[OsString], preload: Preload<'_>, report: &Path, watch: bool) -> Result<Command> {
    let mut command = Command::new(own_executable::path()?);
    let watch = if watch { "1" } else { "0" };
    command.arg("launch").arg(report).arg(preload.library_argument()).arg(watch).arg("--").args(arguments);
    preload.apply_environment(&mut command);
    Ok(command)
}

/// Reads the record that the launcher wrote to `report`.
///
/// # Errors
/// There is no record, or it says that the command could not be started.
pub(crate) fn read_record(report: &Path) -> Result<CommandRecord> {
    let text = fs::read_to_string(report).context("the measuring process left no report")?;
    let record: CommandRecord = serde_json::from_str(&text).context("the measuring process left a damaged report")?;
    match record.start_error {
        Some(error) => Err(Refusal::new(record.exit as u8, error).into()),
        None => Ok(record),
    }
}

/// Runs `arguments` with its output captured, in `folder` or else in the lab's own.
///
/// # Errors
/// The command cannot be started, or takes longer than `limit`.
pub(crate) fn run_captured(
    arguments: &[OsString],
    preload: Preload<'_>,
    folder: Option<&Path>,
    limit: Duration,
    watch: bool,
) -> Result<CommandRun> {
    let report = ScratchFile::new("launch")?;
    let mut command = launcher(arguments, preload, report.path(), watch)?;
    folder.map(|folder| command.current_dir(folder));
    command.stdin(Stdio::null());
    let finished =
        child::run_and_read(&mut command, limit, digest).context("the measuring process could not be started")?;
    let seconds = limit.as_secs();
    match finished.end {
        End::Exited(_) => {}
        End::TimedOut if read_record(report.path()).is_ok() => bail!(
            "has ended, but a process that it started held its output for more than {seconds} s and was ended; redirect that process's output, or \
             raise --timeout"
        ),
        End::TimedOut => bail!("took longer than {seconds} s and was ended; raise --timeout"),
        End::Interrupted => bail!("interrupted"),
    }
    Ok(CommandRun {
        record: read_record(report.path())?,
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
    let report = ScratchFile::new("launch")?;
    let mut command = launcher(arguments, preload, report.path(), false)?;
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child =
        interrupt::while_blocked(|| command.spawn()).context("the measuring process could not be started")?;
    loop {
        interrupt::pending_for_the_command().for_each(|signal| child::send(&child, signal));
        if child.try_wait().context("the measuring process could not be waited for")?.is_some() {
            return read_record(report.path());
        }
        while_running(child.id());
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_standard_error_are_kept_in_order() {
        assert_eq!(last_lines("1\n2\n3\n4\n5\n"), "3 | 4 | 5");
        assert_eq!(last_lines("alone"), "alone");
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn a_record_that_is_missing_or_damaged_or_of_a_refused_command_is_an_error() {
        let report = ScratchFile::new("record-test").unwrap();
        let error = || format!("{:#}", read_record(report.path()).unwrap_err());
        assert!(error().starts_with("the measuring process left no report"));
        fs::write(report.path(), "{").unwrap();
        assert!(error().starts_with("the measuring process left a damaged report"));
        let refused = CommandRecord::not_started(127, "no such command".into());
        fs::write(report.path(), serde_json::to_string(&refused).unwrap()).unwrap();
        assert_eq!(error(), "no such command");
        let status = read_record(report.path()).unwrap_err().downcast::<Refusal>().unwrap().status;
        assert_eq!(status, 127);
    }
}
