//! `freestone man`: the manual in roff.

use anyhow::{Context, Result};
use clap::Command;
use std::fs;
use std::path::{Path, PathBuf};

/// The options of `freestone man`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write a page for each command into this folder, instead of all of them to standard output
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Prints the page of the command itself, then a page for each subcommand; or writes each into a file.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn main(options: &Options, freestone: Command) -> Result<()> {
    match &options.out {
        Some(folder) => write(folder, freestone),
        None => print(freestone),
    }
}

/// Writes `freestone.1`, `freestone-run.1` and so on.
fn write(folder: &Path, freestone: Command) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made: name another folder", folder.display()))?;
    clap_mangen::generate_to(freestone, folder)
        .with_context(|| format!("the pages cannot be written into {}", folder.display()))
}

fn print(freestone: Command) -> Result<()> {
    let mut whole = freestone.disable_help_subcommand(true);
    whole.build();
    for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page)?;
        print!("{}", String::from_utf8_lossy(&page));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_file::ScratchFolder;

    #[test]
    fn each_command_and_each_command_of_a_command_has_a_page() {
        let folder = ScratchFolder::new("manual-test").unwrap();
        let peers = Command::new("peers").subcommand(Command::new("build"));
        write(folder.path(), Command::new("freestone").subcommand(Command::new("run")).subcommand(peers)).unwrap();
        let pages = fs::read_dir(folder.path()).unwrap();
        let mut pages: Vec<_> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
        pages.sort();
        assert_eq!(pages, ["freestone-peers-build.1", "freestone-peers.1", "freestone-run.1", "freestone.1"]);
    }
}
