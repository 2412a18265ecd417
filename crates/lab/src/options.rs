//! `freestone options`: the library's options with their current values.
//!
//! The table belongs to the heap's configuration; this is the lab's only view of it.

use anyhow::{Result, bail};

/// What `freestone options` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the table.
///
/// # Errors
/// This build of the heap states no options.
pub(crate) fn main(_options: &Options) -> Result<()> {
    bail!("this build of Freestone has no option table yet; it comes with the heap")
}
