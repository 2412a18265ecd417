//! The peers: other allocators to compare with. Each is a small library that the workspace in `crates/peers` builds from a registry crate.
//!
//! They are in the folder that `FREESTONELAB_PEERS` names, or else in the user's cache. A command that runs from a checkout builds them and puts
//! them there, for itself and for an installed command, which builds nothing.

use crate::allocator::checkout::Checkout;
use crate::allocator::description::Allocator;
use crate::allocator::installation;
use crate::progress;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// One peer.
pub(crate) struct Peer {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// What it is, and the registry crate that it comes from.
    pub(crate) source: &'static str,
}

/// Every peer, in the order of the tables.
pub(crate) static PEERS: &[Peer] = &[
    Peer { name: "mimalloc", source: "mimalloc 3, of libmimalloc-sys" },
    Peer { name: "mimalloc2", source: "mimalloc 2, of libmimalloc-sys with its feature v2" },
    Peer { name: "jemalloc", source: "jemalloc, of tikv-jemalloc-sys" },
    Peer { name: "snmalloc", source: "snmalloc, of snmalloc-sys" },
    Peer { name: "rpmalloc", source: "rpmalloc, of rpmalloc-sys" },
    Peer { name: "tcmalloc", source: "Google's tcmalloc, of libtcmalloc-sys" },
];

/// The library of `peer`, if it has been built.
pub(crate) fn built(peer: &Peer) -> Option<PathBuf> {
    let library = installation::peers().ok()?.join(file_name(peer));
    library.is_file().then_some(library)
}

fn file_name(peer: &Peer) -> String {
    format!("libpeer_{}.so", peer.name)
}

/// Builds `peer`, puts its library into the folder for peers, and returns it there.
///
/// # Errors
/// There is no checkout to build from, the build fails (the message names the log), or the folder cannot be written.
pub(crate) fn build(peer: &Peer) -> Result<PathBuf> {
    let folder = installation::peers()?;
    let Some(checkout) = Checkout::of_this_command() else {
        bail!(
            "an installed freestone does not build peers. In a checkout of freestone, `cargo run --release -- peers build {0}` puts it into {1}, \
             where this command finds it; or name a library that you have: --allocator {0}=PATH.so",
            peer.name,
            folder.display()
        );
    };
    let built = checkout.build_beside(&format!("peer-{}", peer.name))?.join(file_name(peer));
    keep(&built, &folder.join(file_name(peer)))
        .context("set FREESTONELAB_PEERS to a folder that can be written; peers are put there and looked for there")
}

/// Copies a library to its place. It appears there whole or not at all, and a process that has the old one mapped keeps it.
fn keep(built: &Path, at: &Path) -> Result<PathBuf> {
    let folder = at.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).with_context(|| format!("folder {} cannot be made", folder.display()))?;
    let part = at.with_extension(format!("{}.part", std::process::id()));
    let copied = fs::copy(built, &part).map(|_| ()).and_then(|()| fs::rename(&part, at));
    if copied.is_err() {
        // It may not be there.
        let _ = fs::remove_file(&part);
    }
    copied.with_context(|| format!("{} cannot be copied to {}", built.display(), at.display()))?;
    Ok(at.to_path_buf())
}

/// `peer` as an allocator. If it has not been built, says that it is built now and how long that takes; on a terminal, asks first.
///
/// # Errors
/// The build fails, or the user does not want it.
pub(crate) fn find_or_build(peer: &Peer) -> Result<Allocator> {
    let library = match built(peer) {
        Some(library) => library,
        None => build_announced(peer)?,
    };
    Ok(Allocator::in_library(peer.name, library))
}

fn build_announced(peer: &Peer) -> Result<PathBuf> {
    if Checkout::of_this_command().is_some() {
        eprintln!("{} is not built yet: {} is compiled now, which may take minutes, once", peer.name, peer.source);
        if !progress::confirmed("Build it?") {
            bail!("{} is not built; `freestone peers build {}` builds it", peer.name, peer.name);
        }
    }
    let spinner = progress::spinner(format!("building {}", peer.name));
    let (began, library) = (Instant::now(), build(peer));
    spinner.finish_and_clear();
    let library = library?;
    eprintln!("{} is built ({:.0?})", peer.name, began.elapsed());
    Ok(library)
}
