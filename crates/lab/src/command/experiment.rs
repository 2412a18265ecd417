//! `freestone experiment A…E`: the five published experiments, with the authors' figures beside the measured ones.

mod a;
mod b;
mod c;
mod d;
mod e;
mod go;
mod session;

use crate::allocator::selection;
use crate::command::conclusion::Output;
use crate::show::published;
use crate::show::published::comparison::Comparison;
use anyhow::Result;
use session::Session;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// The options of `freestone experiment`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A: TLSF over an arena. B: HAKMEM's workloads and remedies. C: batched refill. D: pools in front of calloc. E: growth by realloc
    #[arg(value_enum, ignore_case = true)]
    which: Letter,
    /// Allocators, comma-separated or repeated: NAME (system, freestone, or one of `freestone peers list`), or NAME=PATH.so, and then :OPTION=VALUE for each option; the first is the baseline [default: all at hand]
    #[arg(short, long = "allocator", value_name = "NAME[=PATH]")]
    allocators: Vec<String>,
    /// Rounds [default: 9; with --quick 8]
    #[arg(short, long)]
    rounds: Option<NonZeroUsize>,
    /// Fewer rounds
    #[arg(long)]
    quick: bool,
    /// Seconds one run may take before it is ended
    #[arg(long, default_value = "120")]
    timeout: NonZeroU64,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Letter {
    A,
    B,
    C,
    D,
    E,
}

/// Runs an experiment.
///
/// # Errors
/// An allocator cannot be found, or results cannot be written.
pub(crate) fn main(options: &Options) -> Result<()> {
    let letter = ["a", "b", "c", "d", "e"][options.which as usize];
    let selection = selection::select(&options.allocators)?;
    let mut measurement = options.output.begin(&format!("experiment-{letter}"), &selection.allocators)?;
    measurement.leave_out(selection.missing)?;
    let allocators = measurement.prove(&selection.allocators)?;
    let baseline = measurement.baseline(&allocators, "no allocator could be measured; the warnings above say why")?;
    let rounds = options.rounds.map(NonZeroUsize::get).unwrap_or(if options.quick { 8 } else { 9 });
    let limit = Duration::from_secs(options.timeout.get());
    let mut session = Session { measurement, allocators, rounds, limit };
    match options.which {
        Letter::A => a::measure(&mut session)?,
        Letter::B => b::measure(&mut session)?,
        Letter::C => c::measure(&mut session)?,
        Letter::D => d::measure(&mut session)?,
        Letter::E => e::measure(&mut session)?,
    }
    let mut measurement = session.measurement;
    let summary = measurement.finish(&baseline)?;
    measurement.refuse_emptiness(&summary)?;
    options
        .output
        .conclude(&measurement, &summary, || published::comparisons(&summary).iter().for_each(Comparison::print))
}
