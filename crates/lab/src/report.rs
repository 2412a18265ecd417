//! `freestone report`: one self-contained HTML page from result files.
//!
//! Nothing is fetched: style, pictures and data are inside. A manager reads the first screen; an engineer goes on to the workloads side by side, latencies,
//! memory over time, the published figures, the machine, the warnings, and every raw number with how to measure it again. Several files become a trend.
//!
//! | module | owns |
//! |---|---|
//! | [`page`] | the skeleton, the style, escaping |
//! | [`verdicts`] | the summary in words |
//! | [`ratios`] | ratio charts centred on 1, time left, memory right |
//! | [`curves`] | latency and memory over time |
//! | [`details`] | tables: figures, machine, warnings, raw numbers |
//! | [`trend`] | several files |

mod curves;
mod details;
mod page;
mod ratios;
mod trend;
mod verdicts;

use crate::results::{self, Results};
use crate::summary::Summary;
use crate::warning::Warning;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What `freestone report` was asked to do.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Result files; several of them become a trend, in the order of their times
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page to write [default: beside the last file]
    #[arg(short, long)]
    out: Option<PathBuf>,
}

/// Writes the page; files that cannot be read are named and left out.
///
/// # Errors
/// No file can be read, or the page cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let last = options.files.last().context("which results file?")?;
    let page = options.out.clone().unwrap_or_else(|| last.with_extension("html"));
    write(&options.files, &page)?;
    println!("{}", page.display());
    Ok(())
}

/// Writes `page` from `files`.
///
/// # Errors
/// No file can be read, or the page cannot be written.
pub(crate) fn write(files: &[PathBuf], page: &Path) -> Result<()> {
    let mut read = Vec::new();
    for file in files {
        match results::read(file) {
            Ok(results) => read.push((file.clone(), results)),
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => eprintln!("warning: {error:#}; it is left out"),
        }
    }
    read.sort_by_key(|(_, results)| results.header.started_unix);
    let Some((_, latest)) = read.last() else {
        bail!("none of the files can be read, so there is nothing to report");
    };
    let html = render(latest, &read)?;
    fs::write(page, html).with_context(|| format!("page {} cannot be written; name another with --out", page.display()))
}

fn render(latest: &Results, all: &[(PathBuf, Results)]) -> Result<String> {
    let baseline = latest.header.allocators.first().map_or("system", |allocator| allocator.name.as_str());
    let summary = Summary::of(&latest.runs, baseline).with_versions(&latest.header.allocators);
    let mut warnings = latest.warnings.clone();
    warnings.extend(between_files(all));
    let mut body = String::new();
    body.push_str(&verdicts::section(&summary, &latest.header, &warnings));
    body.push_str(&details::published_section(&summary));
    body.push_str(&ratios::section(&summary));
    body.push_str(&curves::latency_section(&summary)?);
    body.push_str(&curves::memory_section(&summary)?);
    body.push_str(&details::figures_section(&summary));
    body.push_str(&trend::section_of(all, baseline));
    body.push_str(&details::warnings_section(&warnings));
    body.push_str(&details::machine_section(&latest.header));
    body.push_str(&details::raw_section(&summary));
    body.push_str(&details::reproduce_section(&latest.header));
    Ok(page::whole(&summary, &latest.header, &body))
}

/// Doubts that arise from putting files side by side.
fn between_files(all: &[(PathBuf, Results)]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let machines: BTreeSet<String> = all
        .iter()
        .map(|(_, results)| format!("{} {}", results.header.machine.cpu, results.header.machine.kernel))
        .collect();
    if machines.len() > 1 {
        warnings.push(Warning::DifferentMachines);
    }
    let names: BTreeSet<&str> =
        all.iter().flat_map(|(_, results)| &results.header.allocators).map(|one| one.name.as_str()).collect();
    for name in names {
        let of_name = all.iter().flat_map(|(_, results)| &results.header.allocators).filter(|one| one.name == name);
        let versions: BTreeSet<String> = of_name.filter_map(|one| one.version.clone()).collect();
        if versions.len() > 1 {
            warnings
                .push(Warning::DifferentVersions { allocator: name.into(), versions: versions.into_iter().collect() });
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
