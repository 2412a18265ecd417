//! What every measurement has in common at the command line: the options of its order and its output, and how it begins and ends.

use crate::allocator::description::Allocator;
use crate::measure::measurement::Measurement;
use crate::measure::summary::Summary;
use crate::show::{html_page, summary_json};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// How the name of a page ends.
const PAGE: &str = "html";

/// The options that `bench`, `compare` and `experiment` share.
#[derive(clap::Args)]
pub(crate) struct Output {
    /// Seed of the order in which allocators run within each round; the seed of a results file repeats its order [default: random]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// Results file to write [default: freestone-results/TIME-COMMAND.jsonl]
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Do not write the HTML page
    #[arg(long)]
    no_report: bool,
    /// Print the summary as JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Begins a measurement with these options.
    ///
    /// # Errors
    /// The results file cannot be written, or the page beside it would replace it.
    pub(crate) fn begin(&self, command: &str, allocators: &[Allocator]) -> Result<Measurement> {
        let is_page = |out: &Path| out.extension().is_some_and(|extension| extension == PAGE);
        if let Some(out) = self.out.as_deref().filter(|out| !self.no_report && is_page(out)) {
            bail!(
                "--out {} names the results, and the page beside them would replace them; name FILE.jsonl",
                out.display()
            );
        }
        Measurement::begin(command, self.out.as_deref(), self.seed, allocators)
    }

    /// Prints the summary, as JSON or with `tables`, then the warnings, and writes the page beside the results file if there is one.
    ///
    /// # Errors
    /// The summary cannot be printed, or the page cannot be written.
    pub(crate) fn conclude(&self, measurement: &Measurement, summary: &Summary, tables: impl FnOnce()) -> Result<()> {
        if self.json {
            summary_json::print(summary, &measurement.header, &measurement.warnings, &measurement.path())?;
        } else {
            tables();
        }
        measurement.print_warnings();
        // What was written to a device (`--out /dev/null`) or a pipe cannot be read again.
        let can_be_read = measurement.path().is_file();
        if !self.no_report && !measurement.is_empty() && can_be_read {
            let path = measurement.path().with_extension(PAGE);
            html_page::write(&[measurement.path()], &path)?;
            eprintln!("report:  {}", path.display());
        }
        Ok(())
    }
}
