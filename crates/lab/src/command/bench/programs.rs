//! `freestone bench --programs`: the suite of real programs under every allocator, in interleaved rounds.

use super::{named, self_test};
use crate::allocator::description::Allocator;
use crate::allocator::{lending, selection};
use crate::command::conclusion::Output;
use crate::measure::commands::CommandJob;
use crate::measure::measurement::Measurement;
use crate::process::interrupt;
use crate::process::server::Server;
use crate::program_suite::workshop::Workshop;
use crate::program_suite::{self, Job, Program, catalogue};
use crate::show::{program_tables, table};
use crate::workload::loaded_allocator;
use crate::{progress, suggestion};
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server has to start before its client does; the clients wait longer if need be.
const SERVER_WAIT: Duration = Duration::from_millis(500);

/// What the command line asks for.
pub(super) struct Request<'a> {
    /// The programs; all of them if none is named.
    pub(super) names: &'a [String],
    /// The allocators, as on the command line.
    pub(super) allocators: &'a [String],
    /// Rounds.
    pub(super) rounds: usize,
    /// How long one run may take.
    pub(super) limit: Duration,
    /// Whether the first allocator is measured against itself.
    pub(super) self_test: bool,
    /// Order and output.
    pub(super) output: &'a Output,
}

/// Runs the suite; returns the exit status.
///
/// # Errors
/// A name does not exist, nothing can be measured, or results cannot be written.
pub(super) fn main(request: &Request<'_>) -> Result<u8> {
    let chosen = selected(request.names)?;
    let mut selection = selection::select(request.allocators)?;
    if request.self_test {
        selection.allocators = self_test::first_twice(selection.allocators);
    }
    let mut measurement = request.output.begin("programs", &selection.allocators)?;
    measurement.leave_out(selection.missing)?;
    let (present, absent): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|program| program.missing_packages().is_empty());
    measurement.leave_out(program_suite::installation(&absent).map(|line| {
        let names: Vec<&str> = absent.iter().map(|program| program.name).collect();
        format!("not installed, so left out: {}; all of them: {line}", names.join(", "))
    }))?;
    let allocators = with_libc(measurement.prove(&selection.allocators)?);
    let baseline = measurement.baseline(&allocators, "no allocator could be measured; the warnings above say why")?;
    measurement.doubt_rounds(request.rounds, allocators.len())?;
    let bar = progress::bar((present.len() * allocators.len() * request.rounds) as u64);
    for program in present {
        if !interrupt::asked()
            && let Err(error) = measure(program, request, &allocators, &bar, &mut measurement)
        {
            measurement.leave_out([format!("{} is left out: {error:#}", program.name)])?;
        }
    }
    bar.finish_and_clear();
    let summary = measurement.finish(&baseline)?;
    measurement.refuse_emptiness(&summary)?;
    request.output.conclude(&measurement, &summary, || program_tables::print(&summary))?;
    Ok(if request.self_test { self_test::judge(&summary) } else { 0 })
}

/// The programs called `names`, or all.
fn selected(names: &[String]) -> Result<Vec<&'static Program>> {
    if names.is_empty() {
        return Ok(catalogue::ALL.iter().collect());
    }
    let known = || catalogue::ALL.iter().map(|program| program.name);
    let find = |name: &String| catalogue::find(name).with_context(|| suggestion::unknown("program", name, known()));
    named::once(names).map(find).collect()
}

/// Prints the programs called `names`, or all, and how to install those that are missing.
///
/// # Errors
/// A name does not exist.
pub(super) fn list(names: &[String]) -> Result<()> {
    let programs = selected(names)?;
    let mut rows = table::text(&["program", "does", "not installed: packages"].map(str::to_owned));
    for program in &programs {
        rows.add_row([program.name, program.does, &program.missing_packages().join(" ")]);
    }
    println!("{rows}");
    if let Some(line) = program_suite::installation(&programs) {
        println!("To install what is missing: {line}");
    }
    Ok(())
}

/// The allocators, the C library's preloaded like the others: some programs (redis) are linked with an allocator of their own.
fn with_libc(allocators: Vec<Allocator>) -> Vec<Allocator> {
    let libc = PathBuf::from(loaded_allocator::c_library());
    let preloaded = |one: Allocator| match one.library {
        None => Allocator { library: Allocator::in_library(&one.name, libc.clone()).library, ..one },
        Some(_) => one,
    };
    allocators.into_iter().map(preloaded).collect()
}

fn measure(
    program: &Program,
    request: &Request<'_>,
    allocators: &[Allocator],
    bar: &ProgressBar,
    measurement: &mut Measurement,
) -> Result<()> {
    bar.set_message(format!("the inputs of {}", program.name));
    let workshop = Workshop::of(program, request.limit)?;
    let job = command_job(program, &workshop, request.limit);
    let warm = job.warm_up(lending::lend(allocators, workshop.path())?, measurement)?;
    warm.measure(request.rounds, bar, measurement)
}

fn command_job(program: &Program, workshop: &Workshop, limit: Duration) -> CommandJob {
    let words = |words: &[&str]| words.iter().map(OsString::from).collect();
    let (command, server) = match program.job {
        Job::Command(command) => (words(command), None),
        Job::Server { server, client } => {
            (words(&["sh", "-c", client]), Some(Server { words: words(server), wait: SERVER_WAIT }))
        }
    };
    let folder = Some(workshop.path().to_path_buf());
    CommandJob { subject: program.name.into(), command, server, input: None, folder, limit, ignore_failure: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_programs_are_chosen_and_unknown_ones_refused() {
        let names = ["jq", "gcc", "jq"].map(str::to_owned);
        let chosen: Vec<&str> = selected(&names).unwrap().iter().map(|program| program.name).collect();
        assert_eq!(chosen, ["jq", "gcc"]);
        assert_eq!(selected(&[]).unwrap().len(), catalogue::ALL.len());
        let refused = format!("{:#}", selected(&["gc".to_owned()]).map(|_| ()).unwrap_err());
        assert!(refused.contains("gcc"), "{refused}");
    }

    #[test]
    fn the_c_librarys_allocator_is_preloaded_like_the_others() {
        let other = Allocator::in_library("other", PathBuf::from("/lib/other.so"));
        let allocators = with_libc(vec![Allocator::system(), other]);
        let shown = |index: usize| allocators[index].library.clone().unwrap().display().to_string();
        assert!(shown(0).contains("libc") && shown(1) == "/lib/other.so");
    }
}
