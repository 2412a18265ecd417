//! `freestone trace`: what a trace says of the program: sizes, lifetimes, threads, call sites, live bytes over time.

mod call_sites;
mod tables;

use crate::show::plot;
use crate::trace::analysis::Analysis;
use crate::trace::recording::Recording;
use crate::trace::strip;
use crate::trace::timeline::Timeline;
use anyhow::{Context, Result};
use call_sites::CallSites;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The options of `freestone trace`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The trace, which may be compressed with gzip
    trace: PathBuf,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Write a plot of live bytes over time
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write the trace once more, without addresses and the command's arguments
    #[arg(long, value_name = "FILE")]
    strip: Option<PathBuf>,
}

/// Reads the trace and prints what it says.
///
/// # Errors
/// It cannot be read, or a file cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let recording = Recording::open(&options.trace)?;
    let timeline = Timeline::of(&recording);
    let figures = Analysis::of(&timeline);
    let sites = CallSites::beside(&options.trace).unwrap_or_else(|error| {
        eprintln!("warning: no call sites: {error:#}");
        None
    });
    let mut doubts = recording.doubts();
    doubts.extend((sites.is_some() && recording.is_forked()).then(|| call_sites::INHERITED.to_owned()));
    // What reads the output may end before all is printed (`head`), and this process then with it.
    write_files(options, &recording, &figures)?;
    if options.json {
        let record = json!({
            "command": recording.command,
            "pid": recording.pid,
            "began_ns": recording.began_ns,
            "peak_rss_bytes": recording.peak_rss,
            "end_us": recording.end_us,
            "events": recording.n_events(),
            "calls": recording.n_calls(),
            "used_bytes": recording.used_bytes,
            "failed_allocations": timeline.n_failed,
            "frees_of_unrecorded_blocks": timeline.n_unknown,
            "unrecorded_frees": timeline.n_implied,
            "warnings": doubts,
            "figures": figures,
            "call_sites": sites.map(|sites| sites.to_json()),
        });
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        tables::print(&recording, &timeline, &figures);
        if let Some(sites) = sites {
            sites.print();
        }
    }
    doubts.iter().for_each(|doubt| eprintln!("warning: {doubt}"));
    Ok(())
}

/// Writes the files that were asked for.
fn write_files(options: &Options, recording: &Recording, figures: &Analysis) -> Result<()> {
    if let Some(file) = &options.plot {
        write_plot(&recording.program, figures, file)?;
    }
    if let Some(file) = &options.strip {
        strip::write(recording, file)?;
    }
    Ok(())
}

fn write_plot(program: &str, figures: &Analysis, file: &Path) -> Result<()> {
    let point = |&(us, bytes): &(u64, u64)| (us as f64 / 1e6, bytes as f64 / f64::from(1 << 20));
    let live = figures.live_bytes_over_time.iter().map(point).collect();
    let title = format!("Live memory of {}", Path::new(program).display());
    let svg = plot::lines(&title, "seconds", "MiB", &[("live".to_owned(), live)], plot::Theme::Light)?;
    fs::write(file, svg).with_context(|| format!("plot {} cannot be written", file.display()))
}
