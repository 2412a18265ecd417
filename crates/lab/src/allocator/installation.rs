//! Where an installed command finds the libraries that it needs.
//!
//! | what | where |
//! |---|---|
//! | `libfreestone.so` | `../lib` of the command's folder, else beside the command, else the file that `FREESTONE_LIBRARY` names |
//! | the clock for counting instructions | `../lib/freestone` |
//! | peers | the folder that `FREESTONELAB_PEERS` names, else `freestone/peers` in the user's cache |
//!
//! Nothing is ever written below the command's prefix. The user's cache is `XDG_CACHE_HOME`, or `~/.cache`.

use crate::process::own_executable;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The variable that names Freestone's library where it is neither in `../lib` nor beside the command.
const LIBRARY_VARIABLE: &str = "FREESTONE_LIBRARY";

/// The names of the library: the one for linking, and the one that a package without the files for linking has.
const LIBRARY_NAMES: [&str; 2] = ["libfreestone.so", "libfreestone.so.0"];

/// Freestone's library for a command that is installed.
///
/// # Errors
/// There is none; the message says where it was looked for.
pub(crate) fn freestone_library() -> Result<PathBuf> {
    find_library(&own_executable::path()?, std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from))
}

fn find_library(executable: &Path, named: Option<PathBuf>) -> Result<PathBuf> {
    let beside = executable.parent().context("the freestone command lies in no folder")?;
    let lib = beside.with_file_name("lib");
    let candidates = [lib.as_path(), beside].into_iter().flat_map(|folder| LIBRARY_NAMES.map(|name| folder.join(name)));
    if let Some(library) = candidates.chain(named.clone()).find(|path| path.is_file()) {
        return Ok(library);
    }
    let what = match named {
        Some(path) => format!("{LIBRARY_VARIABLE} names {}, which is no file: correct it", path.display()),
        None => format!("{LIBRARY_VARIABLE} is not set: set it to the library's path"),
    };
    bail!(
        "libfreestone.so is neither in {} nor beside the freestone command, and {what}, or name the library with --allocator freestone=PATH",
        lib.display()
    )
}

/// The clock that advances only when it is read, if it is installed.
pub(crate) fn counting_clock() -> Option<PathBuf> {
    let executable = own_executable::path().ok()?;
    let library = executable.parent()?.with_file_name("lib").join("freestone/libcounting_clock.so");
    library.is_file().then_some(library)
}

/// The folder for built peers.
///
/// # Errors
/// None is named, and the user has neither a cache nor a home.
pub(crate) fn peers() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    if let Some(named) = variable("FREESTONELAB_PEERS") {
        return std::path::absolute(named).context("FREESTONELAB_PEERS is empty: name a folder, or unset it");
    }
    cache(variable("XDG_CACHE_HOME"), variable("HOME")).map(|cache| cache.join("freestone/peers")).context(
        "there is no folder for built peers: set XDG_CACHE_HOME or HOME, or FREESTONELAB_PEERS to the folder itself",
    )
}

/// The user's cache. The XDG specification has programs ignore a path that is not absolute.
fn cache(of_xdg: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    of_xdg.filter(absolute).or_else(|| home.filter(absolute).map(|home| home.join(".cache")))
}

#[cfg(test)]
mod tests;
