//! The file that a command name stands for, found as a shell finds it, and whether it can be executed.

use object::elf;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// Why a command cannot be run, with the exit status that a shell gives in that case; or why nothing of it can be shown when it had run.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// One of the constants below, or the command's own.
    pub(crate) status: u8,
    message: String,
}

impl Refusal {
    /// There is no such command.
    pub(crate) const NOT_FOUND: u8 = 127;
    /// The file exists but cannot be executed.
    pub(crate) const NOT_RUNNABLE: u8 = 126;
    /// The command was not started, for another reason: a wrong option, or no library. `env` and `timeout` give the same.
    pub(crate) const NOT_STARTED: u8 = 125;

    /// The command ended with status 0, and what it left cannot be shown.
    pub(crate) const NOTHING_TO_SHOW: u8 = 2;

    /// After a command of which nothing can be shown, its own exit status counts, unless that is 0.
    pub(crate) fn after_the_command(exit: i32, message: String) -> Self {
        let status = if exit == 0 { Self::NOTHING_TO_SHOW } else { exit.clamp(0, 255) as u8 };
        Self { status, message }
    }

    /// A refusal with a message that says what to do.
    pub(crate) fn new(status: u8, message: String) -> Self {
        Self { status, message }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The file that the command `name` starts, as a shell would find it.
///
/// # Errors
/// There is no such file, or it cannot be executed.
pub(crate) fn find(name: impl AsRef<OsStr>) -> Result<PathBuf, Refusal> {
    let name = Path::new(name.as_ref());
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return refusal(name).map_or_else(|| Ok(name.to_path_buf()), Err);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut refused = None;
    for candidate in candidates.filter(|_| !name.as_os_str().is_empty()) {
        match refusal(&candidate) {
            None => return Ok(candidate),
            // A file that is not executable is worth a message of its own; a folder of that name is not what the user meant.
            Some(refusal) if refusal.status == Refusal::NOT_RUNNABLE && candidate.is_file() => {
                refused.get_or_insert(refusal);
            }
            Some(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        let what = "was not found in PATH; check its spelling, or give its path";
        Refusal::new(Refusal::NOT_FOUND, format!("command '{}' {what}", name.display()))
    }))
}

/// Why the file at `path` cannot be executed, as far as its metadata show; `None` if it can.
fn refusal(path: &Path) -> Option<Refusal> {
    let (status, why) = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Refusal::NOT_FOUND, "there is no such file".into()),
        Err(error) => (Refusal::NOT_RUNNABLE, error.to_string()),
        Ok(found) if found.is_dir() => (Refusal::NOT_RUNNABLE, "it is a directory".into()),
        Ok(found) if !found.is_file() || found.permissions().mode() & 0o111 == 0 => (
            Refusal::NOT_RUNNABLE,
            "it is not an executable file; if it is a script, chmod +x it or start it with its interpreter".into(),
        ),
        Ok(_) => return None,
    };
    Some(Refusal::new(status, format!("command '{}': {why}", path.display())))
}

/// Whether a file that the kernel refuses to execute may be a script without a `#!` line. Shells read such a file themselves unless its
/// first line contains a zero byte.
pub(crate) fn may_be_script(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut beginning));
    let first_line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && !first_line.contains(&0) && !beginning.starts_with(&elf::ELFMAG)
}

#[cfg(test)]
mod tests;
