//! `freestone peers`: builds and lists the allocators to compare with.

use crate::allocator::description::Allocator;
use crate::allocator::peer_library::{self, PEERS, Peer};
use crate::allocator::proof;
use crate::show::table;
use crate::{progress, suggestion};
use anyhow::{Context, Result};
use std::time::Instant;

/// The options of `freestone peers`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Build all peers, or those named; about three minutes on two processors
    Build {
        /// Which [default: all]
        names: Vec<String>,
    },
    /// List the peers, their versions and their libraries
    List,
}

/// Runs the command; returns 1 if a peer could not be built.
///
/// # Errors
/// A name does not exist.
pub(crate) fn main(options: &Options) -> Result<u8> {
    match &options.action {
        Some(Action::Build { names }) => build(names),
        Some(Action::List) | None => {
            list();
            Ok(0)
        }
    }
}

fn list() {
    let mut table = table::text(&["peer", "source", "version it states", "library"].map(str::to_owned));
    for peer in PEERS {
        let [version, library] = match peer_library::built(peer) {
            Some(library) => {
                let stated = proof::stated_version(&Allocator::in_library(peer.name, library.clone()));
                [stated.unwrap_or_else(|error| format!("none: {error:#}")), library.display().to_string()]
            }
            None => [String::new(), "not built: freestone peers build".into()],
        };
        table.add_row(vec![peer.name.to_owned(), peer.source.to_owned(), version, library]);
    }
    println!("{table}");
}

fn build(wanted: &[String]) -> Result<u8> {
    let known = || PEERS.iter().map(|peer| peer.name);
    let chosen: Vec<&Peer> = if wanted.is_empty() {
        PEERS.iter().collect()
    } else {
        let find = |name: &String| PEERS.iter().find(|peer| peer.name == name);
        wanted
            .iter()
            .map(|name| find(name).with_context(|| suggestion::unknown("peer", name, known())))
            .collect::<Result<_>>()?
    };
    let bar = progress::bar(chosen.len() as u64);
    let mut failed = 0;
    for peer in chosen {
        bar.set_message(format!("building {}", peer.source));
        let began = Instant::now();
        match peer_library::build(peer) {
            Ok(library) => bar.suspend(|| println!("{}: {} ({:.0?})", peer.name, library.display(), began.elapsed())),
            Err(error) => {
                failed += 1;
                bar.suspend(|| eprintln!("{} is left out: {error:#}", peer.name));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(u8::from(failed > 0))
}
