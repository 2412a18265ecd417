//! What an executable or a library is, read from its file: can an allocator be preloaded into it, can it be preloaded itself?

use anyhow::{Context, Result, bail};
use object::read::elf::FileHeader;
use object::{Endianness, Object, ObjectSymbol, elf};
use std::fs;
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

/// The file that `name` starts, as a shell would find it.
///
/// # Errors
/// There is none, or it cannot be executed.
pub(crate) fn find_command(name: &str) -> Result<PathBuf> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        let metadata = fs::metadata(&path).with_context(|| format!("command '{name}': there is no such file"))?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
            bail!(
                "command '{name}' is not an executable file; if it is a script, chmod +x it or start it with its interpreter"
            );
        }
        return Ok(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    let is_executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    candidates
        .into_iter()
        .find(is_executable)
        .with_context(|| format!("command '{name}' was not found in PATH; check its spelling, or give its path"))
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
