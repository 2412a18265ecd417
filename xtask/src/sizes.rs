//! `cargo xtask test --only sizes`: files, types and functions stay as small as can be read in one sitting.
//!
//! | what | at most | unless its comment says |
//! |---|---|---|
//! | a file | 350 lines | `Long because: …`, in its first lines |
//! | a type | 15 fields | `Wide because: …` |
//! | a function | 60 lines | `Long because: …` |
//! | a function | 6 parameters | `Wide because: …` |
//!
//! Test code is held to the first row only. Files that allow `unsafe` are counted in each heap crate and held to [`UNSAFE_FILES`].

use crate::process::root;
use crate::source::{Crate, folder_of, workspace};
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

mod shape;

const FILE_LINES_MOST: usize = 350;

/// The first lines of a file, where it may say why it is long.
const HEAD_LINES: usize = 40;

/// How many files of each heap crate may allow `unsafe`: lower the number with each file that no longer needs it.
const UNSAFE_FILES: [(&str, usize); 5] = [("base", 6), ("os", 38), ("freestone", 60), ("tlsf", 15), ("pool", 8)];

/// A file that is too long and does not say why.
fn long_file(path: &str, text: &str) -> Option<String> {
    let n = text.lines().count();
    let says_why = text.lines().take(HEAD_LINES).any(|line| line.contains("Long because: "));
    (n > FILE_LINES_MOST && !says_why).then(|| {
        format!("{path} has {n} lines; split it, or say `Long because: …` in its head (at most {FILE_LINES_MOST})")
    })
}

/// Every file below `folder` that is written by hand in a language with comments.
fn long_files(folder: &Path, complaints: &mut Vec<String>) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != "corpus" {
                long_files(&path, complaints)?;
            }
        } else if path.extension().is_some_and(|end| ["rs", "go", "c", "h"].iter().any(|known| end == *known)) {
            let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            complaints.extend(long_file(&shown, &fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// Whether a file opts in to `unsafe`.
fn allows_unsafe(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("#![allow(") && line.contains("unsafe_code"))
}

/// A complaint if the number of files that allow `unsafe` is not what it is held to.
fn unsafe_complaint(name: &str, krate: &Crate, held_to: usize) -> Option<String> {
    let n = krate.files.iter().filter(|file| allows_unsafe(&file.text)).count();
    println!("{name}: {n} of {} files allow unsafe", krate.files.len());
    match n.cmp(&held_to) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(format!("{n} files of {name} allow `unsafe`, {held_to} may")),
        std::cmp::Ordering::Less => {
            println!("that is fewer than {held_to}: lower the number in xtask/src/sizes.rs");
            None
        }
    }
}

/// Checks the workspace.
pub(crate) fn check() -> Result<()> {
    let mut complaints = Vec::new();
    for folder in ["crates", "xtask", "fuzz", "go"] {
        long_files(&root().join(folder), &mut complaints)?;
    }
    for (name, krate) in workspace()?.iter() {
        for file in &krate.files {
            let shown = folder_of(name).join("src").join(&file.path).display().to_string();
            complaints.extend(shape::complaints(file).into_iter().map(|complaint| format!("{shown}:{complaint}")));
        }
        let held_to = UNSAFE_FILES.iter().find(|(of, _)| of == name).map(|&(_, n)| n);
        complaints.extend(held_to.and_then(|n| unsafe_complaint(name, krate, n)));
    }
    if complaints.is_empty() { Ok(()) } else { bail!("too large:\n  {}", complaints.join("\n  ")) }
}

#[cfg(test)]
mod tests;
