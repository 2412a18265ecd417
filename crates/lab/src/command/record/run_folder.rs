//! The folder that the processes of one run record into, until the run has ended.
//!
//! ```text
//!  while the command runs                      afterwards
//!  NAME.N.recording/NAME                       NAME
//!  NAME.N.recording/NAME.PID                   NAME.PID
//!  NAME.N.recording/NAME.PID.heap              NAME.PID.heap
//! ```
//!
//! No other run has the folder, so what is in it is of this one. Of the files outside, the run replaces one: the trace that had its name when it began,
//! with the profile beside it. Where there is another file, the process's number is added to the name.
//!
//! The library opens a trace by its name whenever it grows: that of a process which outlives the command stays where it is, and so does the folder.

use crate::heap_profile::dump;
use crate::trace::profile_beside;
use anyhow::{Context, Result, bail};
use freestone_trace::file::{HEADER_BYTES, Header, end};
use std::fs;
use std::io::{self, Read as _};
use std::iter;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// See the module header.
pub(super) struct RunFolder {
    path: PathBuf,
    /// Where the first trace will be.
    output: PathBuf,
    /// The trace that is there when the run begins.
    earlier: Option<FileId>,
}

/// A device, and the number of a file on it.
type FileId = (u64, u64);

/// A trace that a process of the run has written, or still writes.
pub(super) struct Trace {
    pub(super) path: PathBuf,
    pub(super) pid: u32,
    /// Whether the process is running, and records.
    pub(super) goes_on: bool,
}

impl RunFolder {
    /// A new folder beside `output`.
    ///
    /// # Errors
    /// There is a file called `output` that is no trace, or the folder cannot be made.
    pub(super) fn new(output: &Path) -> Result<Self> {
        let Some(name) = output.file_name() else { bail!("{} is no file", output.display()) };
        let earlier = id(output).filter(|_| header(output, |_| ()).is_some());
        if earlier.is_none() && output.exists() {
            bail!("{} exists and is no trace; choose another file: -o FILE", output.display());
        }
        for number in std::process::id().. {
            let mut name = name.to_owned();
            name.push(format!(".{number}.recording"));
            let path = output.with_file_name(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, output: output.to_owned(), earlier }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("{} cannot be made", path.display())),
            }
        }
        bail!("too many recordings into {} were not finished", output.display())
    }

    /// What the first process is to call its trace; the others add their numbers.
    pub(super) fn first(&self) -> PathBuf {
        self.output.file_name().map_or_else(|| self.path.clone(), |name| self.path.join(name))
    }

    /// The traces, the first one first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn traces(&self) -> Result<Vec<Trace>> {
        let entries = fs::read_dir(&self.path).with_context(|| format!("{} cannot be read", self.path.display()))?;
        let trace = |path: PathBuf| {
            let (pid, is_over) = header(&path, |header| (header.pid, header.end & (end::EXITED | end::CUT_OFF) != 0))?;
            let goes_on = !is_over && is_mapped(&path, pid);
            Some(Trace { path, pid, goes_on })
        };
        let mut traces: Vec<Trace> = entries.flatten().filter_map(|entry| trace(entry.path())).collect();
        traces.sort_by_key(|trace| (trace.path.as_os_str().len(), trace.path.clone()));
        Ok(traces)
    }

    /// Moves traces that are complete, and the profiles beside them, out of the folder, and returns all with their new names.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub(super) fn publish(&self, mut traces: Vec<Trace>) -> Result<Vec<Trace>> {
        let move_file = |from: &Path, to: &Path| {
            fs::rename(from, to).with_context(|| format!("{} cannot be moved to {}", from.display(), to.display()))
        };
        let mut profiles = Vec::new();
        for trace in traces.iter_mut().filter(|trace| !trace.goes_on) {
            let to = self.free_name(&trace.path, trace.pid);
            let replaced = if to == self.output { header(&to, |header| header.pid) } else { None };
            move_file(&trace.path, &to)?;
            replaced.map(|pid| profile_beside::path(&to, pid)).iter().for_each(|profile| remove_profile(profile));
            profiles.push((profile_beside::path(&trace.path, trace.pid), profile_beside::path(&to, trace.pid)));
            trace.path = to;
        }
        for (from, to) in profiles.iter().filter(|(from, _)| from.exists()) {
            move_file(from, to)?;
        }
        Ok(traces)
    }

    /// The name for the trace `of` process `pid` outside the folder: its own, or with the process's number behind it.
    fn free_name(&self, of: &Path, pid: u32) -> PathBuf {
        let own = of.file_name().map_or_else(|| self.output.clone(), |name| self.output.with_file_name(name));
        let numbered = |ending: String| {
            let mut name = self.output.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let first = iter::once(own.clone()).chain(iter::once(numbered(format!(".{pid}"))));
        let later = (2_u32..).map(|number| numbered(format!(".{pid}.{number}")));
        let is_free = |path: &PathBuf| match id(path) {
            None => true,
            there => *path == self.output && there == self.earlier,
        };
        first.chain(later).find(is_free).unwrap_or(own)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // It is not empty where a process goes on, or where files could not be moved.
        let _ = fs::remove_dir(&self.path);
    }
}

/// What `of` takes from the header of the trace at `path`; `None` if it is none.
fn header<T>(path: &Path, of: impl FnOnce(&Header<'_>) -> T) -> Option<T> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(HEADER_BYTES as u64).read_to_end(&mut start).ok()?;
    Header::read(&start).ok().map(|header| of(&header))
}

fn id(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|there| (there.dev(), there.ino()))
}

/// Whether process `pid` has a part of the file mapped.
fn is_mapped(path: &Path, pid: u32) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    fs::read(format!("/proc/{pid}/maps"))
        .is_ok_and(|maps| maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(path)))
}

/// Removes the profile of a trace that was replaced, if it had one.
fn remove_profile(path: &Path) {
    if dump::read(path).is_ok() {
        // A profile that stays is of a process that no trace names.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests;
