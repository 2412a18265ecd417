//! How every measurement ends: its warnings, the name of its results file, and its page.

use crate::measure::measurement::Measurement;
use crate::show::html_page;
use anyhow::Result;

/// Prints the warnings, and writes the page beside the results file unless `no_report` is set.
///
/// # Errors
/// The page cannot be written.
pub(crate) fn write(measurement: &Measurement, no_report: bool) -> Result<()> {
    measurement.print_warnings();
    if !no_report {
        let path = measurement.path().with_extension("html");
        html_page::write(&[measurement.path()], &path)?;
        eprintln!("report:  {}", path.display());
    }
    Ok(())
}
