//! `freestone report`: one HTML page from result files, or the table of programs as Markdown.

use crate::show::html_page;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// The options of `freestone report`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Result files; several of them become a trend, in the order of their times
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page to write [default: beside the last file]
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Print the table of `bench --programs` as Markdown, of the last file, and write no page
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
}

/// Writes the page and prints its name.
///
/// # Errors
/// No file can be read, or the page cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let last = options.files.last().context("no results file was given; name one or more")?;
    if options.markdown {
        print!("{}", html_page::markdown(last)?);
        return Ok(());
    }
    let path = options.out.clone().unwrap_or_else(|| last.with_extension("html"));
    html_page::write(&options.files, &path)?;
    println!("{}", path.display());
    Ok(())
}
