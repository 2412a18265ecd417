//! The peers: other allocators, each a small library built from its registry crate by the workspace in `crates/peers`.
//!
//! They are looked for in the folder `FREESTONELAB_PEERS` names and in `peers/release` of the cargo target folder, where they are built.

use super::Allocator;
use crate::{checkout, progress};
use anyhow::{Context, Result};
use std::path::PathBuf;

/// One peer.
pub(crate) struct Peer {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// What it is, and the registry crate it comes from.
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

/// The peer's library, if it has been built.
pub(crate) fn built(peer: &Peer) -> Option<PathBuf> {
    let file = format!("libpeer_{}.so", peer.name);
    let given = std::env::var_os("FREESTONELAB_PEERS").map(PathBuf::from);
    let own = checkout::target_folder().ok().map(|target| target.join("peers/release"));
    given.into_iter().chain(own).map(|folder| folder.join(&file)).find(|path| path.is_file())
}

/// Builds the peer and returns its library.
///
/// # Errors
/// No checkout to build from, or it does not build: the log's place is in the message.
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

/// The peer as an allocator, built if need be.
pub(super) fn ready(peer: &Peer) -> Result<Allocator> {
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
