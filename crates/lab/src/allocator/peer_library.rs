//! The peers: other allocators to compare with. Each is a small library that the workspace in `crates/peers` builds from a registry crate.
//!
//! The lab looks for them in the folder that `FREESTONELAB_PEERS` names, and then in `peers/release` of the cargo target folder, where it
//! builds them.

use crate::allocator::checkout;
use crate::allocator::description::Allocator;
use crate::progress;
use anyhow::{Context, Result};
use std::path::PathBuf;

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
    let file = format!("libpeer_{}.so", peer.name);
    let given = std::env::var_os("FREESTONELAB_PEERS").map(PathBuf::from);
    let own = checkout::target_folder().ok().map(|target| target.join("peers/release"));
    given.into_iter().chain(own).map(|folder| folder.join(&file)).find(|path| path.is_file())
}

/// Builds `peer` and returns its library.
///
/// # Errors
/// There is no checkout to build from, or the build fails; the message names the log.
pub(crate) fn build(peer: &Peer) -> Result<PathBuf> {
    let root = checkout::root().context(
        "the peers are built from freestone's source, and the checkout this command was built from is gone; build them there and \
         name their folder in FREESTONELAB_PEERS",
    )?;
    let target = checkout::target_folder()?;
    let log = target.join(format!("logs/peer-{}.log", peer.name));
    checkout::cargo_build(&root.join("crates/peers"), &format!("peer-{}", peer.name), &target.join("peers"), &log)?;
    built(peer).with_context(|| {
        format!("{} was built but its library is not where it should be; see {}", peer.name, log.display())
    })
}

/// `peer` as an allocator; builds it first if it has not been built.
///
/// # Errors
/// The build fails.
pub(crate) fn find_or_build(peer: &Peer) -> Result<Allocator> {
    let library = match built(peer) {
        Some(library) => library,
        None => {
            let spinner = progress::spinner(format!("building {}", peer.name));
            let library = build(peer);
            spinner.finish_and_clear();
            library?
        }
    };
    Ok(Allocator::in_library(peer.name, library))
}
