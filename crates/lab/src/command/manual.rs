//! `freestone man`: the manual in roff.

use anyhow::Result;
use clap::Command;
use std::io;

/// Prints the page of the command itself, then a page for each subcommand.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(freestone: Command) -> Result<()> {
    let mut whole = freestone.disable_help_subcommand(true);
    whole.build();
    for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
        clap_mangen::Man::new(command.clone()).render(&mut io::stdout())?;
    }
    Ok(())
}
