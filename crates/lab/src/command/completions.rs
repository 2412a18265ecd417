//! `freestone completions`: a completion script for a shell.

use clap::Command;
use clap_complete::Shell;
use std::io;

/// Prints the script for `shell`.
pub(crate) fn print(shell: Shell, freestone: &mut Command) {
    clap_complete::generate(shell, freestone, "freestone", &mut io::stdout());
}
