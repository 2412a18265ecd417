//! Processes that keep a page of statistics (option `live` of the library), read from outside.
//!
//! The page is found among the process's mappings, so its path does not matter. Its last state stays readable when the process has gone. It is read, not mapped:
//! where somebody shortens the file, there is no state, and no fault.

use crate::process::proc_file;
use freestone::door::live::{self, LiveState, PAGE_WORDS, Unreadable};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::{fmt, io};

/// The environment variable that sets the option.
pub(crate) const VARIABLE: &str = "FREESTONE_LIVE";

/// Length of a page.
const FILE_BYTES: usize = PAGE_WORDS * size_of::<u64>();

/// A page is read so often at most. Its process writes it ten times a second.
const TRIES: u32 = 100;

/// Why there are no figures of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// There is no process of that number.
    NoProcess(u32),
    /// It may not be looked at.
    NotPermitted(u32),
    /// Freestone is not in it, as far as its mappings show.
    NoLibrary(u32, String),
    /// The library is in it, and keeps no page.
    NoPage(u32, String),
    /// Its page has another format.
    OtherVersion(u32, u64),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Self::NotPermitted(pid) => {
                write!(f, "process {pid} belongs to another user; run `freestone top` as that user or as root")
            }
            Self::NoLibrary(pid, name) => write!(
                f,
                "process {pid} ({name}) keeps no statistics: it does not run under Freestone, or was started without {VARIABLE}=on; \
                 start it with `freestone top -- COMMAND`"
            ),
            Self::NoPage(pid, name) => write!(
                f,
                "process {pid} ({name}) runs under Freestone, but keeps no statistics; start it with {VARIABLE}=on in its environment"
            ),
            Self::OtherVersion(pid, version) => write!(
                f,
                "process {pid} runs under a libfreestone of another version, whose statistics have format {version}; use the `freestone` \
                 command of that version"
            ),
        }
    }
}

impl std::error::Error for Obstacle {}

/// A process and its page.
pub(crate) struct LiveProcess {
    /// Its number.
    pub(crate) pid: u32,
    /// The kernel's name of it.
    pub(crate) name: String,
    /// When it started, in the kernel's ticks: tells it from a later one with its number.
    started: u64,
    page: File,
}

impl LiveProcess {
    /// Finds the page of the process `pid`.
    ///
    /// # Errors
    /// There is none that can be read.
    pub(crate) fn attach(pid: u32) -> Result<Self, Obstacle> {
        let (name, started) = name_and_start(pid).ok_or(Obstacle::NoProcess(pid))?;
        let maps = proc_file::read(format!("/proc/{pid}/maps")).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Obstacle::NotPermitted(pid),
            _ => Obstacle::NoProcess(pid),
        })?;
        for path in shared_files(&maps) {
            // As the process sees it, which may be in a container.
            let seen_by_it = Path::new(&format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(&path));
            let pages = [seen_by_it, path].map(|path| open(&path));
            let Some((page, words)) =
                pages.into_iter().flatten().find_map(|page| words(&page).map(|words| (page, words)))
            else {
                continue;
            };
            match live::process_of(&words) {
                Ok(_) => return Ok(Self { pid, name, started, page }),
                Err(Unreadable::OtherVersion(version)) => return Err(Obstacle::OtherVersion(pid, version)),
                Err(_) => {}
            }
        }
        Err(if has_library(&maps) { Obstacle::NoPage(pid, name) } else { Obstacle::NoLibrary(pid, name) })
    }

    /// The last whole state; `None` if there is none yet.
    pub(crate) fn state(&self) -> Option<Box<LiveState>> {
        state(&self.page)
    }

    /// Whether the process has not ended.
    pub(crate) fn is_running(&self) -> bool {
        name_and_start(self.pid).is_some_and(|(_, started)| started == self.started)
    }
}

/// The last whole state of a page that a process left behind.
pub(crate) fn left_behind(path: &Path) -> Option<Box<LiveState>> {
    state(&open(path)?)
}

/// Opens what may be a page.
fn open(path: &Path) -> Option<File> {
    let page = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    let facts = page.metadata().ok()?;
    (facts.is_file() && facts.len() == FILE_BYTES as u64).then_some(page)
}

/// The words of a page, as they are while they are read.
fn words(page: &File) -> Option<Box<[AtomicU64; PAGE_WORDS]>> {
    let mut bytes = vec![0; FILE_BYTES];
    page.read_exact_at(&mut bytes, 0).ok()?;
    let words = bytes.as_chunks().0.iter().map(|&word| AtomicU64::new(u64::from_ne_bytes(word)));
    words.collect::<Box<[AtomicU64]>>().try_into().ok()
}

/// The last whole state of a page: it was the last one when the page was read, and it still is when it is read again.
fn state(page: &File) -> Option<Box<LiveState>> {
    let read = || live::read(&*words(page)?).ok().map(Box::new);
    let mut state = read()?;
    for _ in 0..TRIES {
        let again = read()?;
        if again.number == state.number {
            return Some(state);
        }
        state = again;
    }
    None
}

/// Whether the shared library is among a process's mappings, as `/proc/PID/maps` lists them.
pub(crate) fn has_library(maps: &str) -> bool {
    let is_it = |path: PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libfreestone.so"));
    maps.lines().filter_map(path_of).any(is_it)
}

/// The kernel's name of a process that has not ended, and when it started.
pub(crate) fn name_and_start(pid: u32) -> Option<(String, u64)> {
    parse_stat(&proc_file::read(format!("/proc/{pid}/stat")).ok()?)
}

/// See [`name_and_start`]: `PID (NAME) STATE …`, and the name may have parentheses and spaces.
fn parse_stat(stat: &str) -> Option<(String, u64)> {
    let (before, after) = stat.rsplit_once(") ")?;
    let mut fields = after.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    // The start is field 22; `fields` goes on with field 4.
    Some((before.split_once('(')?.1.to_owned(), fields.nth(18)?.parse().ok()?))
}

/// The files that a process has mapped shared and writable, as `/proc/PID/maps` lists them.
pub(crate) fn shared_files(maps: &str) -> impl Iterator<Item = PathBuf> {
    maps.lines().filter(|line| line.split(' ').nth(1) == Some("rw-s")).filter_map(path_of)
}

/// The path at the end of a line of `/proc/PID/maps`, if it is that of a file.
fn path_of(line: &str) -> Option<PathBuf> {
    let path = &line[line.find('/')?..];
    (!path.ends_with(" (deleted)")).then(|| path.into())
}

#[cfg(test)]
mod tests;
