//! The folder that the processes of one run record into, until the run has ended.
//!
//! ```text
//!  while the command runs                      afterwards
//!  NAME.N.recording/NAME                       NAME
//!  NAME.N.recording/NAME.PID                   NAME.PID
//!  NAME.N.recording/NAME.PID.heap              NAME.PID.heap, or NAME.heap: that of the last trace of the process
//! ```
//!
//! No other run has the folder, so what is in it is of this one. Of the files outside, the run replaces one: the trace that had its name when it began,
//! with the profile beside it. Where there is another file, the process's number is added to the name.
//!
//! The library opens a trace by its name whenever it grows: that of a process which outlives the command stays where it is, and so does the folder.

mod moving;

use crate::heap_profile::dump;
use crate::trace::profile_beside;
use anyhow::{Context, Result, bail};
use freestone_trace::file::{HEADER_BYTES, Header, end};
use std::collections::HashMap;
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
    /// The trace that is there when the run begins, and its process.
    earlier: Option<(FileId, u32)>,
}

/// A device, and the number of a file on it.
type FileId = (u64, u64);

/// A trace that a process of the run has written, or still writes.
pub(super) struct Trace {
    pub(super) path: PathBuf,
    pub(super) pid: u32,
    /// When it began, in nanoseconds since 1970. A process that goes on as another program has another trace from then on.
    began_ns: u64,
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
        let earlier = trace_at(output);
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
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("{} cannot be made; check its folder, or choose another: -o FILE", path.display())
                    });
                }
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
            let is_over = |header: &Header<'_>| header.end & (end::EXITED | end::CUT_OFF) != 0;
            let (pid, began_ns, is_over) = header(&path, |header| (header.pid, header.began_ns, is_over(header)))?;
            let goes_on = !is_over && is_mapped(&path, pid);
            Some(Trace { path, pid, began_ns, goes_on })
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
        let mut last = HashMap::new();
        for trace in traces.iter_mut().filter(|trace| !trace.goes_on) {
            let shown = || format!("{} cannot be moved beside {}", trace.path.display(), self.output.display());
            trace.path = self.move_out(&trace.path, trace.pid).with_context(shown)?;
            let (began_ns, path) = last.entry(trace.pid).or_insert((trace.began_ns, &trace.path));
            if trace.began_ns > *began_ns {
                (*began_ns, *path) = (trace.began_ns, &trace.path);
            }
        }
        for (&pid, (_, trace)) in &last {
            move_profile(&profile_beside::as_written(&self.first(), pid), &profile_beside::path(trace))?;
        }
        Ok(traces)
    }

    /// Moves the trace `from` of process `pid` out of the folder: to its own name, or to one with the process's number. Returns the new name.
    fn move_out(&self, from: &Path, pid: u32) -> io::Result<PathBuf> {
        let own = from.file_name().map_or_else(|| self.output.clone(), |name| self.output.with_file_name(name));
        if own == self.output && self.replace_earlier(from)? {
            return Ok(own);
        }
        move_to_first_free(from, iter::once(own).chain(self.numbered(pid)))
    }

    /// The names beside `output` with a process's number.
    fn numbered(&self, pid: u32) -> impl Iterator<Item = PathBuf> {
        let endings = iter::once(format!(".{pid}")).chain((2_u32..).map(move |number| format!(".{pid}.{number}")));
        endings.map(|ending| {
            let mut name = self.output.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        })
    }

    /// Puts the trace `from` in the place of the one that was there when the run began, and removes that, with the profile beside it. Returns whether it
    /// was still there.
    fn replace_earlier(&self, from: &Path) -> io::Result<bool> {
        if self.earlier.is_none() || trace_at(&self.output) != self.earlier {
            return Ok(false);
        }
        match moving::in_place_of(from, &self.output) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            moved => moved?,
        }
        self.remove_if_earlier(from)?;
        Ok(true)
    }

    /// Removes the earlier trace, whose place was taken and which is called `path` now, and its profile. If `path` is another trace, another run has
    /// replaced the earlier one in this very moment: that run's trace stays, with its process's number in the name.
    fn remove_if_earlier(&self, path: &Path) -> io::Result<()> {
        let is_removed = fs::symlink_metadata(path).is_err();
        if is_removed || trace_at(path) == self.earlier {
            remove_profile(&profile_beside::path(&self.output));
            return if is_removed { Ok(()) } else { fs::remove_file(path) };
        }
        let pid = header(path, |header| header.pid).unwrap_or_default();
        move_to_first_free(path, self.numbered(pid)).map(|_| ())
    }
}

/// Moves a file to the first of the names that no file has. Returns the name.
fn move_to_first_free(from: &Path, names: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    for to in names {
        match moving::to_free_name(from, &to) {
            Ok(()) => return Ok(to),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
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

/// The trace at `path`, and its process: a file system gives the number of a file that was removed to a new one.
fn trace_at(path: &Path) -> Option<(FileId, u32)> {
    let there = fs::symlink_metadata(path).ok()?;
    Some(((there.dev(), there.ino()), header(path, |header| header.pid)?))
}

/// Whether process `pid` has a part of the file mapped.
fn is_mapped(path: &Path, pid: u32) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    fs::read(format!("/proc/{pid}/maps"))
        .is_ok_and(|maps| maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(path)))
}

/// Moves a profile, if there is one, beside its trace: in the place of another profile, but of no other file.
fn move_profile(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    remove_profile(to);
    let shown = || format!("{} cannot be moved to {}", from.display(), to.display());
    moving::to_free_name(from, to).with_context(shown)
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
