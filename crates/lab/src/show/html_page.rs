//! The HTML page that `freestone report` and every measurement write: one file without outside references.
//!
//! The browser fetches nothing, because style, pictures and data are inside. The first screen is for a reader with one minute. The rest is
//! for engineers: the workloads side by side, latencies, memory over time, the published figures, the machine, the warnings, and all figures
//! with the command that measures them again. Several files become a trend.
//!
//! | module | owns |
//! |---|---|
//! | [`skeleton`] | the document, the style, escaping |
//! | [`first_screen`] | the ranking in words |
//! | [`ratio_charts`] | one chart of all ratios, centred on 1, for time and one for memory |
//! | [`curves`] | latency by percentile, memory over time |
//! | [`details`] | tables: figures, machine, warnings, all rounds |
//! | [`trend`] | several files |

mod curves;
mod details;
mod first_screen;
mod ratio_charts;
pub(crate) mod skeleton;
mod trend;

use crate::measure::doubts;
use crate::measure::summary::Summary;
use crate::results::results_file::{self, Results};
use crate::show::program_tables;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes `page` from `files`; files that cannot be read are named on stderr and left out.
///
/// # Errors
/// No file can be read, or the page is one of the files or cannot be written.
pub(crate) fn write(files: &[PathBuf], page: &Path) -> Result<()> {
    if let Some(file) = files.iter().find(|file| is_same_file(file, page)) {
        bail!("the page would replace the results in {}; name another file for it with --out", file.display());
    }
    let mut read = Vec::new();
    for file in files {
        match results_file::read(file) {
            Ok(results) => read.push((file.clone(), results)),
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => eprintln!("warning: {error:#}; it is left out"),
        }
    }
    read.sort_by_key(|(_, results)| results.header.started_unix);
    let Some((_, latest)) = read.last() else {
        bail!("none of the files can be read, so there is nothing to report; the warnings above say why");
    };
    let html = render(latest, &read)?;
    fs::write(page, html).with_context(|| format!("page {} cannot be written; name another with --out", page.display()))
}

/// Whether two paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    identity(one).is_some_and(|of_one| Some(of_one) == identity(other))
}

/// The programs of a results file as a Markdown table.
///
/// # Errors
/// The file cannot be read, or holds no run of the suite of programs.
pub(crate) fn markdown(file: &Path) -> Result<String> {
    let results = results_file::read(file)?;
    program_tables::markdown(&summary_of(&results), &results.header)
        .with_context(|| format!("{} holds no run of `freestone bench --programs`", file.display()))
}

fn summary_of(results: &Results) -> Summary {
    let baseline = results.header.allocators.first().map_or("system", |allocator| allocator.name.as_str());
    Summary::of(&results.runs, baseline).with_versions(&results.header.allocators)
}

fn render(latest: &Results, all: &[(PathBuf, Results)]) -> Result<String> {
    let baseline = latest.header.allocators.first().map_or("system", |allocator| allocator.name.as_str());
    let summary = summary_of(latest);
    let mut warnings = latest.warnings.clone();
    warnings.extend(doubts::between_files(all.iter().map(|(_, results)| results)));
    let mut body = String::new();
    let origin = skeleton::Origin::of(&latest.header);
    body.push_str(&details::programs_section(&summary));
    body.push_str(&first_screen::section(&summary, &latest.header, &warnings));
    body.push_str(&ratio_charts::section(&summary, &origin));
    body.push_str(&curves::memory_section(&summary, &origin)?);
    body.push_str(&curves::latency_section(&summary, &origin)?);
    body.push_str(&details::published_section(&summary));
    body.push_str(&details::figures_section(&summary));
    body.push_str(&trend::section_of(all, baseline));
    body.push_str(&details::warnings_section(&warnings));
    body.push_str(&details::machine_section(&latest.header));
    body.push_str(&details::raw_section(&summary));
    body.push_str(&details::reproduce_section(&latest.header));
    Ok(skeleton::whole(&summary, &latest.header, &body))
}

#[cfg(test)]
mod tests;
