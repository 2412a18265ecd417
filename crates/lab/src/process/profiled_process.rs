//! Processes that answer requests for heap profiles (option `heap_profile=ready` of the library).
//!
//! The page for requests is found among the process's mappings, so its path does not matter. Requests are written into the file, and the process, which has it mapped,
//! sees them: no signal is sent, and nothing is stopped.

use crate::process::live_process::{has_library, name_and_start, shared_files};
use crate::process::proc_file;
use anyhow::{Context, Result, bail};
use freestone::door::profile_page::{MAGIC, PAGE_WORDS, Request};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// The environment variable that sets the option.
const VARIABLE: &str = "FREESTONE_HEAP_PROFILE";

/// How the name of a page ends.
const ENDING: &str = ".profile";

/// How long a process may take to answer. It looks ten times a second, and writes a profile in some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process and its page.
pub(crate) struct ProfiledProcess {
    /// Its number.
    pub(crate) pid: u32,
    /// The kernel's name of it.
    pub(crate) name: String,
    /// When it started, in the kernel's ticks: tells it from a later one with its number.
    started: u64,
    page: File,
    /// Where the page is, as this process sees it.
    path: PathBuf,
}

impl ProfiledProcess {
    /// Finds the page of the process `pid`.
    ///
    /// # Errors
    /// There is none that can be written.
    pub(crate) fn attach(pid: u32) -> Result<Self> {
        let (name, started) = name_and_start(pid).with_context(|| format!("there is no process {pid}"))?;
        let not_permitted = || {
            format!("process {pid} ({name}) belongs to another user; run `freestone profile` as that user or as root")
        };
        let maps = match proc_file::read(format!("/proc/{pid}/maps")) {
            Ok(maps) => maps,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!("{}", not_permitted()),
            Err(_) => bail!("there is no process {pid}"),
        };
        for path in shared_files(&maps).filter(|path| path.to_string_lossy().ends_with(ENDING)) {
            // As the process sees it, which may be in a container.
            let seen_by_it = Path::new(&format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(&path));
            for path in [seen_by_it, path] {
                match OpenOptions::new().read(true).write(true).open(&path) {
                    Ok(page) => {
                        let process = Self { pid, name: name.clone(), started, page, path };
                        if process.word(0).is_ok_and(|magic| magic == MAGIC) {
                            return Ok(process);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!("{}", not_permitted()),
                    Err(_) => {}
                }
            }
        }
        if has_library(&maps) {
            bail!(
                "process {pid} ({name}) runs under Freestone, but takes no requests: start it with {VARIABLE}=ready in its environment; \
                 it takes requests a tenth of a second after that"
            );
        }
        bail!(
            "process {pid} ({name}) does not run under Freestone, or was started without {VARIABLE}=ready; start it with \
             `{VARIABLE}=ready freestone run COMMAND`, or run a new one with `freestone profile COMMAND`"
        );
    }

    /// Whether it samples allocations.
    ///
    /// # Errors
    /// The page cannot be read.
    pub(crate) fn is_on(&self) -> Result<bool> {
        Ok(self.word(5)? != 0)
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        name_and_start(self.pid).is_some_and(|(_, started)| started == self.started)
    }

    /// Has the process do something.
    ///
    /// # Errors
    /// It does not answer, or could not do it.
    pub(crate) fn request(&self, request: Request) -> Result<()> {
        let (pid, name) = (self.pid, &self.name);
        // No two requests are the same number, whoever makes them.
        let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let number = moment << 8 | request as u64;
        self.page.write_at(&number.to_ne_bytes(), 2 * 8).context("the request cannot be written")?;
        let begin = Instant::now();
        while self.word(3)? != number {
            if !self.is_running() {
                bail!("process {pid} ({name}) has ended");
            }
            if begin.elapsed() > PATIENCE {
                bail!(
                    "process {pid} ({name}) does not answer: it is stopped, or no thread of it allocates and background=off"
                );
            }
            sleep(Duration::from_millis(10));
        }
        match self.word(4)? {
            0 => Ok(()),
            error => {
                let error = io::Error::from_raw_os_error(i32::try_from(error).unwrap_or_default());
                bail!("process {pid} ({name}) cannot do it, in {}: {error}", self.path.display());
            }
        }
    }

    /// Has the process write a profile into a file, which is removed after `read` has read it.
    ///
    /// # Errors
    /// It does not answer, or the profile cannot be written or read.
    pub(crate) fn profile<T>(&self, request: Request, read: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let file = self.path.with_extension("profile.heap");
        // What an interrupted command has left.
        let _ = fs::remove_file(&file);
        self.request(request)?;
        let profile = read(&file);
        let _ = fs::remove_file(&file);
        profile
    }

    fn word(&self, number: usize) -> Result<u64> {
        debug_assert!(number < PAGE_WORDS);
        let mut bytes = [0; 8];
        self.page
            .read_exact_at(&mut bytes, number as u64 * 8)
            .with_context(|| format!("{} is damaged", self.path.display()))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}
