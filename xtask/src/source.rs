//! The Rust sources of the workspace's crates, parsed: what the checks of `layers`, `sizes` and `claims` read.

use std::path::{Path, PathBuf};

pub(crate) mod arrows;
pub(crate) mod attributes;
mod imports;
mod names;
mod tree;

pub(crate) use tree::{Crate, SourceFile};

/// The crates of the allocators themselves: other people's programs are built with these.
pub(crate) const HEAP_CRATES: [&str; 5] = ["base", "os", "freestone", "tlsf", "pool"];

/// Every crate of the workspace.
pub(crate) const CRATES: [&str; 9] = ["base", "os", "freestone", "tlsf", "pool", "capi", "testkit", "lab", "xtask"];

/// The folder of a crate, from the workspace's.
pub(crate) fn folder_of(name: &str) -> PathBuf {
    if name == "xtask" { PathBuf::from(name) } else { Path::new("crates").join(name) }
}

/// Reads a crate of the workspace.
pub(crate) fn read_crate(name: &str) -> anyhow::Result<Crate> {
    Crate::read(&crate::process::root().join(folder_of(name)).join("src"))
}

#[cfg(test)]
mod tests;
