//! The allocators at hand: the system's, Freestone, the peers that were built, and any library the user names.

mod peers;

pub(crate) use peers::{PEERS, Peer, build as build_peer, built as built_peer};

use crate::{checkout, executable, names, progress};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a library that states no version is said to have stated.
pub(crate) const UNSTATED: &str = "unstated";

/// An allocator that can be measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Allocator {
    /// Its name in tables.
    pub(crate) name: String,
    /// The library to preload; `None` for the system's own.
    pub(crate) library: Option<PathBuf>,
    /// Its version, once it has stated it.
    pub(crate) version: Option<String>,
    /// Environment it is run with, beside the preload: options under test.
    #[serde(default)]
    pub(crate) environment: Vec<(String, String)>,
}

impl Allocator {
    /// The C library's allocator.
    pub(crate) fn system() -> Self {
        Self { name: "system".into(), library: None, version: None, environment: Vec::new() }
    }

    /// An allocator in a library, under the path the kernel knows it by: that is the one a process's mappings show.
    pub(crate) fn in_library(name: &str, library: PathBuf) -> Self {
        let library = library.canonicalize().unwrap_or(library);
        Self { name: name.into(), library: Some(library), version: None, environment: Vec::new() }
    }

    /// Its name with its version, as tables show it: `mimalloc 3.3.2`, `system (glibc 2.36)`; the bare name where no version was stated.
    pub(crate) fn label(&self) -> String {
        let Some(stated) = self.version.as_deref().filter(|&version| version != UNSTATED) else {
            return self.name.clone();
        };
        // What stands in brackets is where it comes from.
        let stated = stated.split(" (").next().unwrap_or(stated);
        match stated.split_once(' ') {
            Some((product, version)) if self.name.starts_with(product) => format!("{} {version}", self.name),
            None if stated.starts_with(|letter: char| letter.is_ascii_digit()) => format!("{} {stated}", self.name),
            _ => format!("{} ({stated})", self.name),
        }
    }

    /// The same allocator under another name and with options set.
    pub(crate) fn with_options(&self, name: &str, options: &[(&str, &str)]) -> Self {
        let environment = options.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { name: name.into(), environment, ..self.clone() }
    }
}

/// Freestone's shared library, built first when the lab runs from a checkout.
///
/// # Errors
/// There is none and none can be built, or it is no allocator.
pub(crate) fn freestone() -> Result<Allocator> {
    let target = checkout::target_folder()?;
    let beside = checkout::own_executable()?.with_file_name("libfreestone.so");
    let built = target.join("release/libfreestone.so");
    // A stale library would be measured in good faith: where there is a checkout, cargo decides whether it is fresh.
    if let Some(root) = checkout::root() {
        let spinner = progress::spinner("building libfreestone.so");
        let outcome = checkout::cargo_build(&root, "freestone-capi", &target, &target.join("logs/libfreestone.log"));
        spinner.finish_and_clear();
        if !built.is_file() {
            outcome?;
        }
    }
    let library = [built, beside].into_iter().find(|path| path.is_file()).context(
        "libfreestone.so is not beside the freestone command; build it with `cargo build --release -p freestone-capi`, or \
         name one: --allocator freestone=PATH",
    )?;
    executable::check_allocator_library(&library)?;
    Ok(Allocator::in_library("freestone", library))
}

/// The allocators the user asked for, or all at hand.
pub(crate) struct Selection {
    /// Those to measure, the baseline first.
    pub(crate) allocators: Vec<Allocator>,
    /// Why others are missing.
    pub(crate) missing: Vec<String>,
}

/// Finds what `wanted` names: `NAME`, or `NAME=PATH.so`; nothing means all at hand.
///
/// # Errors
/// An unknown name, or a library that is none.
pub(crate) fn select(wanted: &[String]) -> Result<Selection> {
    if wanted.is_empty() {
        return Ok(at_hand());
    }
    let mut allocators = Vec::new();
    for text in wanted.iter().flat_map(|text| text.split(',')) {
        let allocator = one(text.trim())?;
        if allocators.iter().any(|other: &Allocator| other.name == allocator.name) {
            bail!("allocator '{}' is named twice; give the second another name: NAME=PATH", allocator.name);
        }
        allocators.push(allocator);
    }
    Ok(Selection { allocators, missing: Vec::new() })
}

fn one(text: &str) -> Result<Allocator> {
    if let Some((name, path)) = text.split_once('=') {
        let path = Path::new(path);
        executable::check_allocator_library(path)?;
        return Ok(Allocator::in_library(name, path.to_path_buf()));
    }
    match text {
        "system" => Ok(Allocator::system()),
        "freestone" => freestone(),
        _ => match PEERS.iter().find(|peer| peer.name == text) {
            Some(peer) => peers::ready(peer),
            None => {
                let known = ["system", "freestone"].into_iter().chain(PEERS.iter().map(|peer| peer.name));
                bail!("{}; any other: --allocator NAME=PATH.so", names::unknown("allocator", text, known))
            }
        },
    }
}

fn at_hand() -> Selection {
    let mut selection = Selection { allocators: vec![Allocator::system()], missing: Vec::new() };
    match freestone() {
        Ok(freestone) => selection.allocators.push(freestone),
        Err(error) => selection.missing.push(format!("freestone is left out: {error:#}")),
    }
    let absent: Vec<&str> = PEERS
        .iter()
        .filter_map(|peer| match peers::built(peer) {
            Some(library) => {
                selection.allocators.push(Allocator::in_library(peer.name, library));
                None
            }
            None => Some(peer.name),
        })
        .collect();
    if !absent.is_empty() {
        let list = absent.join(", ");
        selection
            .missing
            .push(format!("not built, so not measured: {list}. `freestone peers build` builds them in a few minutes"));
    }
    selection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_name_with_the_version_that_the_library_states() {
        let label = |name: &str, version: &str| {
            Allocator { version: Some(version.into()), ..Allocator::in_library(name, PathBuf::new()) }.label()
        };
        assert_eq!(label("mimalloc", "mimalloc 3.3.2 (libmimalloc-sys 0.1.49)"), "mimalloc 3.3.2");
        assert_eq!(label("mimalloc2", "mimalloc 2.3.2 (libmimalloc-sys 0.1.49, feature v2)"), "mimalloc2 2.3.2");
        assert_eq!(label("tcmalloc", "tcmalloc crate-0.1.14 (Google's)"), "tcmalloc crate-0.1.14");
        assert_eq!(label("system", "glibc 2.36"), "system (glibc 2.36)");
        assert_eq!(label("system again", "glibc 2.36"), "system again (glibc 2.36)");
        assert_eq!(label("freestone", "0.1.0"), "freestone 0.1.0");
        assert_eq!(label("mine", "jemalloc 5.3.1 (elsewhere)"), "mine (jemalloc 5.3.1)");
        assert_eq!(label("mine", UNSTATED), "mine");
        assert_eq!(Allocator::system().label(), "system", "before it has run");
    }
}
