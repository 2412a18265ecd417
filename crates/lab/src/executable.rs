//! What an executable or a library is, read from its file: can an allocator be preloaded into it, can it be preloaded itself?

use anyhow::{Context, Result, bail};
use object::read::elf::FileHeader;
use object::{Endianness, Object, ObjectSymbol, elf};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why a command will not use a preloaded allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Linked statically: the loader never runs.
    Static,
    /// Runs with another user's rights: the loader ignores the environment.
    Privileged,
    /// Defines `malloc` itself.
    OwnMalloc,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Static => "it is linked statically, so nothing can be preloaded into it; link libfreestone.a instead",
            Self::Privileged => "it is setuid, setgid or has file capabilities, so the loader ignores LD_PRELOAD",
            Self::OwnMalloc => "it brings its own malloc, which is found before any preloaded one",
        })
    }
}

/// A command that cannot be run, and the exit status that says so, as a shell has it.
#[derive(Debug)]
pub(crate) struct CannotRun {
    /// [`NOT_FOUND`](Self::NOT_FOUND) or [`NOT_RUNNABLE`](Self::NOT_RUNNABLE).
    pub(crate) status: u8,
    message: String,
}

impl CannotRun {
    /// There is no such command.
    pub(crate) const NOT_FOUND: u8 = 127;
    /// It is there and cannot be run.
    pub(crate) const NOT_RUNNABLE: u8 = 126;

    /// With a message that says what to do.
    pub(crate) fn new(status: u8, message: String) -> Self {
        Self { status, message }
    }
}

impl std::fmt::Display for CannotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CannotRun {}

/// The file that `name` starts, as a shell would find it.
///
/// # Errors
/// There is none, or it cannot be executed.
pub(crate) fn find_command(name: impl AsRef<OsStr>) -> Result<PathBuf, CannotRun> {
    let name = Path::new(name.as_ref());
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return match refusal(name) {
            None => Ok(name.to_path_buf()),
            Some(refusal) => Err(refusal),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut refused = None;
    for candidate in candidates.filter(|_| !name.as_os_str().is_empty()) {
        match refusal(&candidate) {
            None => return Ok(candidate),
            // A folder in PATH may hold a folder of this name: nobody means it.
            Some(refusal) if refusal.status == CannotRun::NOT_RUNNABLE && candidate.is_file() => {
                refused.get_or_insert(refusal);
            }
            Some(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        let what = "was not found in PATH; check its spelling, or give its path";
        CannotRun::new(CannotRun::NOT_FOUND, format!("command '{}' {what}", name.display()))
    }))
}

/// Why the file at `path` cannot be executed, as far as its metadata tell.
fn refusal(path: &Path) -> Option<CannotRun> {
    let (status, why) = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => (CannotRun::NOT_FOUND, "there is no such file".into()),
        Err(error) => (CannotRun::NOT_RUNNABLE, error.to_string()),
        Ok(found) if found.is_dir() => (CannotRun::NOT_RUNNABLE, "it is a directory".into()),
        Ok(found) if !found.is_file() || found.permissions().mode() & 0o111 == 0 => (
            CannotRun::NOT_RUNNABLE,
            "it is not an executable file; if it is a script, chmod +x it or start it with its interpreter".into(),
        ),
        Ok(_) => return None,
    };
    Some(CannotRun::new(status, format!("command '{}': {why}", path.display())))
}

/// Whether a file the kernel refuses as a program may be a script without a first line that names its interpreter: shells read such a file
/// themselves, unless there is a zero in its first line.
pub(crate) fn may_be_script(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut beginning));
    let first_line = beginning.split(|&byte| byte == b'\n').next().unwrap_or_default();
    read.is_ok() && !first_line.contains(&0) && !beginning.starts_with(&elf::ELFMAG)
}

/// What keeps a preloaded allocator out of `command`, as far as its file tells. Scripts are judged by their interpreter.
pub(crate) fn obstacle(command: &Path) -> Option<Obstacle> {
    let mut path = command.to_path_buf();
    for _ in 0..4 {
        let data = fs::read(&path).ok()?;
        if is_privileged(&path) {
            return Some(Obstacle::Privileged);
        }
        match interpreter(&data) {
            Some(next) => path = next,
            None => return obstacle_in_elf(&data),
        }
    }
    None
}

fn is_privileged(path: &Path) -> bool {
    let special_bits = fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o6000 != 0);
    special_bits || crate::workload::process_view::has_file_capabilities(path)
}

/// The program a script names in its first line; `env` is looked through.
fn interpreter(data: &[u8]) -> Option<PathBuf> {
    let line = data.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first.ends_with("/env") {
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return find_command(name).ok();
    }
    Some(PathBuf::from(first))
}

fn obstacle_in_elf(data: &[u8]) -> Option<Obstacle> {
    let file = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = file.endian().ok()?;
    let segments = file.program_headers(endian, data).ok()?;
    if !segments.iter().any(|segment| segment.p_type.get(endian) == elf::PT_INTERP) {
        return Some(Obstacle::Static);
    }
    defines_malloc(data).ok()?.then_some(Obstacle::OwnMalloc)
}

fn defines_malloc(data: &[u8]) -> Result<bool> {
    let file = object::File::parse(data)?;
    Ok(file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok("malloc")))
}

/// Checks that `path` is a shared library that defines `malloc`.
///
/// # Errors
/// It is not, and what it is instead.
pub(crate) fn check_allocator_library(path: &Path) -> Result<()> {
    let shown = path.display();
    let data = fs::read(path).with_context(|| format!("allocator library {shown} cannot be read; check the path"))?;
    let header = elf::FileHeader64::<Endianness>::parse(&*data)
        .ok()
        .and_then(|header| Some((header, header.endian().ok()?)))
        .with_context(|| format!("{shown} is not a shared object for this machine; give a .so file"))?;
    if header.0.e_type(header.1) != elf::ET_DYN {
        bail!("{shown} is not a shared object but an object file or a fixed-address program; link it with -shared");
    }
    if !defines_malloc(&data).unwrap_or(false) {
        bail!("{shown} defines no malloc, so it would change nothing; name a library that exports the malloc family");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
