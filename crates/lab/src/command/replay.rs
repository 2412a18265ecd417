//! `freestone replay`: the calls of a trace under every allocator at hand, in interleaved rounds.
//!
//! The trace is turned into a plan once; each run is the workload `replay` in a process of its own.

use crate::allocator::selection;
use crate::command::conclusion::Output;
use crate::measure::rounds::{self, Contender, Job};
use crate::process::interrupt;
use crate::scratch_file::ScratchFile;
use crate::show::{quantity, summary_tables};
use crate::trace::analysis::Analysis;
use crate::trace::plan::{Order, Plan};
use crate::trace::recording::Recording;
use crate::trace::timeline::Timeline;
use crate::workload::params::{self, Scale};
use crate::workload::replay;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::fs::{self, File};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// The options of `freestone replay`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The trace, which may be compressed with gzip
    trace: PathBuf,
    /// Allocators, comma-separated or repeated: NAME (system, freestone, or one of `freestone peers list`), or NAME=PATH.so, and then :OPTION=VALUE for each option; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds
    #[arg(short, long, default_value = "9")]
    rounds: NonZeroUsize,
    /// What is written into the blocks
    #[arg(long, value_enum, default_value_t = Touch::All)]
    touch: Touch,
    /// How threads are ordered
    #[arg(long, value_enum, default_value_t = Threads::Turns)]
    order: Threads,
    /// Times that a run repeats the trace
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u64).range(1..=params::MOST))]
    repeat: u64,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "600")]
    timeout: NonZeroU64,
    /// Replay even if the machine has less memory available than the trace's blocks need
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    output: Output,
}

/// What is written into the blocks.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Touch {
    /// Nothing
    None,
    /// Their first byte
    First,
    /// All of them
    All,
}

/// How threads are ordered.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Threads {
    /// They take turns in the order of the trace: the same blocks are live at every moment
    Turns,
    /// They run at once, and wait only for the blocks that they get from others
    Free,
}

/// Runs the command; returns the exit status.
///
/// # Errors
/// The trace cannot be read, there is not enough memory for it, or nothing can be measured.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let recording = Recording::open(&options.trace)?;
    recording.doubts().iter().for_each(|doubt| eprintln!("warning: {doubt}"));
    let timeline = Timeline::of(&recording);
    let figures = Analysis::of(&timeline);
    if timeline.n_blocks == 0 {
        bail!("the trace {} has no allocations", options.trace.display());
    }
    if options.touch == Touch::All && !options.anyway {
        refuse_without_memory(figures.peak_live_bytes, available_bytes())?;
    }
    let order = if options.order == Threads::Turns { Order::Turns } else { Order::Free };
    // A closed pipe must not end the lab while there is a plan: its file would stay.
    interrupt::continue_when_the_reader_is_gone();
    let plan = write(&Plan::of(&timeline, order))?;
    let subject = options.trace.file_name().map_or_else(|| "trace".into(), |name| name.to_string_lossy().into_owned());
    let mut selection = selection::select(&options.allocators)?;
    let mut measurement = options.output.begin("replay", &selection.allocators)?;
    measurement.leave_out(std::mem::take(&mut selection.missing))?;
    let allocators = measurement.prove(&selection.allocators)?;
    let baseline = measurement.baseline(&allocators, "no allocator could be measured; the warnings above say why")?;
    let job = Job {
        workload: &replay::WORKLOAD,
        params: vec![
            format!("plan={}", plan.number()),
            format!("touch={}", options.touch as u64),
            format!("ops={}", options.repeat),
        ],
        scale: Scale::Normal,
        limit: Duration::from_secs(options.timeout.get()),
        subject,
    };
    rounds::measure_all(&[job], &Contender::plain(&allocators), options.rounds.get(), &mut measurement)?;
    let summary = measurement.finish(&baseline)?;
    measurement.refuse_emptiness(&summary)?;
    if interrupt::asked() {
        eprintln!("interrupted: what was measured so far follows");
    }
    options.output.conclude(&measurement, &summary, || {
        summary_tables::print(&summary);
        println!("{}", facts(&recording, &figures));
    })?;
    Ok(0)
}

/// What is the same under every allocator.
fn facts(recording: &Recording, figures: &Analysis) -> String {
    let mut text = format!(
        "{}: {} calls, at most {} live",
        recording.command,
        quantity::count(figures.allocations + figures.frees + figures.resizes),
        quantity::bytes(figures.peak_live_bytes as f64)
    );
    if recording.peak_rss != 0 {
        text.push_str(&format!("; when it was recorded, {} resident", quantity::bytes(recording.peak_rss as f64)));
    }
    text
}

/// # Errors
/// The blocks of the trace need more than is available.
fn refuse_without_memory(needed: u64, available: Option<u64>) -> Result<()> {
    match available {
        Some(available) if needed > available => bail!(
            "the trace has up to {} live at once, and this machine has {} available; use --touch none, a machine with more memory, or --anyway",
            quantity::bytes(needed as f64),
            quantity::bytes(available as f64)
        ),
        _ => Ok(()),
    }
}

/// What the kernel could give to processes now; `None` if it does not say.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Writes the plan into a temporary file.
fn write(plan: &Plan) -> Result<ScratchFile> {
    let file = ScratchFile::new(replay::PLAN)?;
    let shown = || format!("the plan {} cannot be written", file.path().display());
    File::create_new(file.path()).and_then(|made| plan.write(made)).with_context(shown)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_too_little_memory_is_told_before_the_replay() {
        assert!(refuse_without_memory(10, Some(10)).is_ok() && refuse_without_memory(10, None).is_ok());
        let text = refuse_without_memory(3 << 30, Some(1 << 30)).unwrap_err().to_string();
        assert!(text.contains("3.00 GiB") && text.contains("1.00 GiB") && text.contains("--touch none"), "{text}");
    }
}
