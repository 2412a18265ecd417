//! The Rust sources of the workspace's crates, parsed: what the checks of `layers`, `sizes` and `claims` read.

use crate::process::root;
use anyhow::{Context, Result};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(crate) mod arrows;
pub(crate) mod attributes;
mod imports;
mod names;
mod tree;

pub(crate) use imports::collect_imports;
pub(crate) use tree::{Crate, SourceFile};

/// The crates of the allocators themselves: other people's programs are built with these.
pub(crate) const HEAP_CRATES: [&str; 5] = ["base", "os", "freestone", "tlsf", "pool"];

/// Every crate of the workspace.
pub(crate) const CRATES: [&str; 12] =
    ["base", "os", "trace", "freestone", "tlsf", "pool", "bounded", "capi", "memory", "testkit", "lab", "xtask"];

/// The folder of a crate, from the workspace's.
pub(crate) fn folder_of(name: &str) -> PathBuf {
    if name == "xtask" { PathBuf::from(name) } else { Path::new("crates").join(name) }
}

/// The crates of the workspace, by their names in [`CRATES`].
pub(crate) type Workspace = Vec<(&'static str, Crate)>;

/// Reads every crate, once in a process.
pub(crate) fn workspace() -> Result<Rc<Workspace>> {
    thread_local! {
        static READ: OnceCell<Rc<Workspace>> = const { OnceCell::new() };
    }
    READ.with(|read| match read.get() {
        Some(known) => Ok(Rc::clone(known)),
        None => {
            let crates = CRATES.map(|name| Ok((name, Crate::read(&root().join(folder_of(name)).join("src"))?)));
            let crates: Workspace = crates.into_iter().collect::<Result<_>>().context("the sources cannot be read")?;
            Ok(Rc::clone(read.get_or_init(|| Rc::new(crates))))
        }
    })
}

#[cfg(test)]
mod tests;
