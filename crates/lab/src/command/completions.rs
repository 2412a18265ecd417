//! `freestone completions`: a completion script for a shell.

use clap::Command;
use clap_complete::Shell;

/// Prints the script for `shell`.
pub(crate) fn print(shell: Shell, freestone: &mut Command) {
    let mut script = Vec::new();
    clap_complete::generate(shell, freestone, "freestone", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
}
