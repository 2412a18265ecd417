//! Whether a library can be preloaded, and whether a command uses it: read from their files.

use crate::allocator::file_capabilities::has_file_capabilities;
use crate::process::command_file;
use anyhow::{Context, Result, bail};
use object::read::elf::FileHeader;
use object::{Endianness, Object, ObjectSymbol, elf};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// Interpreters of interpreters that are followed, as the kernel does.
const MOST_INTERPRETERS: usize = 4;

/// Why a command does not use a preloaded allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It is linked statically: the loader never runs.
    Static,
    /// It is linked statically by Go, and calls no function of C.
    Go,
    /// It runs with another user's rights: the loader ignores `LD_PRELOAD`.
    Privileged,
    /// It defines `malloc` itself.
    OwnMalloc,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "it is linked statically, so nothing can be preloaded into it; link libfreestone.a instead",
            Self::Go => "it is a Go program without cgo: Go's runtime allocates, and calls no malloc",
            Self::Privileged => "it is setuid, setgid or has file capabilities, so the loader ignores LD_PRELOAD",
            Self::OwnMalloc => "it defines malloc itself, and the loader finds that before any preloaded one",
        })
    }
}

/// What keeps a preloaded allocator out of `command`, as far as its file shows. For a script, the interpreter is examined.
pub(crate) fn obstacle(command: &Path) -> Option<Obstacle> {
    let mut path = command.to_path_buf();
    for _ in 0..MOST_INTERPRETERS {
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
    special_bits || has_file_capabilities(path)
}

/// The program that a script names in its `#!` line; for `env`, the program that `env` starts.
fn interpreter(data: &[u8]) -> Option<PathBuf> {
    let line = data.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first.ends_with("/env") {
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return command_file::find(name).ok();
    }
    Some(PathBuf::from(first))
}

fn obstacle_in_elf(data: &[u8]) -> Option<Obstacle> {
    let file = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = file.endian().ok()?;
    let segments = file.program_headers(endian, data).ok()?;
    if !segments.iter().any(|segment| segment.p_type.get(endian) == elf::PT_INTERP) {
        let sections = file.sections(endian, data).ok()?;
        let is_go = sections.section_by_name(endian, b".go.buildinfo").is_some();
        return Some(if is_go { Obstacle::Go } else { Obstacle::Static });
    }
    defines_malloc(data).ok()?.then_some(Obstacle::OwnMalloc)
}

fn defines_malloc(data: &[u8]) -> Result<bool> {
    let file = object::File::parse(data)?;
    Ok(file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok("malloc")))
}

/// Checks that `path` is a shared library that defines `malloc`, and that it can be named in `LD_PRELOAD`.
///
/// # Errors
/// It is not; the message says what it is instead.
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
    // As `Allocator::in_library` names it.
    let full = path.canonicalize()?;
    if full.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
        bail!(
            "{} cannot be preloaded: spaces and colons separate the names in LD_PRELOAD; move it to a path without them",
            full.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_file::{ScratchFile, ScratchFolder};
    use std::process::Command;

    #[test]
    fn the_shell_has_no_obstacle_and_a_script_is_judged_by_its_interpreter() {
        let shell = command_file::find("sh").unwrap();
        assert_eq!(obstacle(&shell), None);
        assert_eq!(interpreter(b"#!/bin/sh -e\necho\n"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(interpreter(b"#!/usr/bin/env -S sh\n"), Some(shell));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn a_program_of_go_without_cgo_is_not_told_to_link_the_archive() {
        let Ok(go) = command_file::find("go") else { return };
        let folder = ScratchFolder::new("go-test").unwrap();
        let (source, program) = (folder.path().join("main.go"), folder.path().join("program"));
        fs::write(&source, "package main\nfunc main() {}\n").unwrap();
        let mut build = Command::new(go);
        build.env("CGO_ENABLED", "0").env("GOCACHE", folder.path()).args(["build", "-o"]).args([&program, &source]);
        assert!(build.status().unwrap().success());
        assert_eq!(obstacle(&program), Some(Obstacle::Go));
    }

    #[test]
    fn a_command_that_runs_with_another_users_rights_is_privileged() {
        let file = ScratchFile::new("setuid-test").unwrap();
        fs::write(file.path(), "#!/bin/sh\n").unwrap();
        assert_eq!(obstacle(file.path()), None);
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(obstacle(file.path()), Some(Obstacle::Privileged));
    }

    #[test]
    fn a_library_must_exist_be_shared_and_define_malloc() {
        let text = |path: &str| check_allocator_library(Path::new(path)).unwrap_err().to_string();
        assert!(text("/no/such/library.so").contains("cannot be read"));
        assert!(text("/etc/passwd").contains("not a shared object"));
        let own = std::env::current_exe().unwrap();
        assert!(text(own.to_str().unwrap()).contains("defines no malloc"));
    }

    #[test]
    fn a_library_that_ld_preload_cannot_name_is_refused() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut files = maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
        let library = files.find(|path| check_allocator_library(path).is_ok()).expect("the C library is mapped");
        for name in ["preload test.so", "preload:test.so"] {
            let file = ScratchFile::new(name).unwrap();
            fs::copy(library, file.path()).unwrap();
            let text = check_allocator_library(file.path()).unwrap_err().to_string();
            assert!(text.contains("spaces and colons"), "{text}");
        }
    }
}
