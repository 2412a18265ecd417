//! One measurement under way: what is compared, the results file, the runs so far, and the doubts.
//!
//! All commands that measure use it. It opens the file, records runs and warnings as they come, and finishes in one place, so that a
//! measurement that was interrupted or failed leaves complete results behind too. One without a single run leaves no file: its warnings are printed.

use crate::allocator::description::Allocator;
use crate::allocator::proof::{self, Proof};
use crate::measure::statistics::ENOUGH_ROUNDS;
use crate::measure::summary::{LOOP_ONLY, Summary};
use crate::measure::{doubts, order};
use crate::process::interrupt;
use crate::results::file_header::{Header, Seed};
use crate::results::machine::Machine;
use crate::results::outcome::{Outcome, Run};
use crate::results::results_file::{self, Writer};
use crate::results::warning::{self, Warning};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Stands for the workload in messages about an allocator that fails in every one.
const EVERY_WORKLOAD: &str = "every workload";

/// The runs and warnings of one measurement, on disk and in memory.
pub(crate) struct Measurement {
    writer: Writer,
    runs: Vec<Run>,
    /// Reasons for doubt so far.
    pub(crate) warnings: Vec<Warning>,
    /// The header of the file.
    pub(crate) header: Header,
    /// What the order of runs within each round is drawn from.
    pub(crate) seed: Seed,
    given_up: BTreeSet<(String, String)>,
}

impl Measurement {
    /// Begins a measurement. `what` is part of the file's name unless `out` gives one; without a `seed`, one is drawn.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn begin(what: &str, out: Option<&Path>, seed: Option<u32>, allocators: &[Allocator]) -> Result<Self> {
        interrupt::listen();
        let seed = order::given_or_random(seed);
        let header = Header::new(Machine::here(), seed, allocators);
        let path = out.map_or_else(|| results_file::new_path(what), Path::to_path_buf);
        let writer = Writer::create(&path, &header)?;
        let mut measurement =
            Self { writer, runs: Vec::new(), warnings: Vec::new(), header, seed, given_up: BTreeSet::new() };
        let header = &measurement.header;
        for warning in [doubts::of_machine(&header.machine), doubts::of_environment(&header.environment)].concat() {
            measurement.warn(warning)?;
        }
        Ok(measurement)
    }

    /// Records that parts of the measurement are left out, one sentence each.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn leave_out(&mut self, sentences: impl IntoIterator<Item = String>) -> Result<()> {
        sentences.into_iter().try_for_each(|what| self.warn(Warning::Missing { what }))
    }

    /// Proves every allocator. Drops those that do not work or do not answer `malloc`, and records the versions of the others.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn prove(&mut self, allocators: &[Allocator]) -> Result<Vec<Allocator>> {
        let mut proven = Vec::new();
        for allocator in allocators {
            match proof::prove(allocator) {
                Ok(Proof::Present { version }) => {
                    proven.push(Allocator { version: Some(version), ..allocator.clone() });
                }
                Ok(Proof::Absent { malloc_library }) => self.warn(Warning::NotInProcess {
                    subject: EVERY_WORKLOAD.into(),
                    allocator: allocator.name.clone(),
                    why: format!("malloc was answered by {malloc_library}"),
                })?,
                Err(_) if interrupt::asked() => break,
                Err(error) => self.give_up(EVERY_WORKLOAD, &allocator.name, format!("{error:#}"))?,
            }
        }
        self.header.allocators.clone_from(&proven);
        self.writer.allocators(&proven)?;
        Ok(proven)
    }

    /// Records a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&mut self, subject: &str, allocator: &str, round: usize, outcome: Outcome) -> Result<()> {
        let run = Run { subject: subject.into(), allocator: allocator.into(), round, outcome };
        self.writer.run(&run)?;
        self.runs.push(run);
        Ok(())
    }

    /// Records a warning, once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn warn(&mut self, warning: Warning) -> Result<()> {
        if !self.warnings.contains(&warning) {
            self.writer.warning(&warning)?;
            self.warnings.push(warning);
        }
        Ok(())
    }

    /// Warns if `rounds` are too few to tell `contenders` apart.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn doubt_rounds(&mut self, rounds: usize, contenders: usize) -> Result<()> {
        if rounds >= ENOUGH_ROUNDS || contenders < 2 {
            return Ok(());
        }
        self.warn(Warning::FewRounds { rounds, enough: ENOUGH_ROUNDS })
    }

    /// Records that a run failed, and excludes its subject under its allocator from the rounds to come.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn give_up(&mut self, subject: &str, allocator: &str, what: String) -> Result<()> {
        self.given_up.insert((subject.into(), allocator.into()));
        self.warn(Warning::Failed { subject: subject.into(), allocator: allocator.into(), what })
    }

    /// Whether `subject` failed under `allocator` before.
    pub(crate) fn is_given_up(&self, subject: &str, allocator: &str) -> bool {
        self.given_up.contains(&(subject.into(), allocator.into()))
    }

    /// Finishes the measurement: adds the doubts because of the figures.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(&mut self, baseline: &str) -> Result<Summary> {
        if interrupt::asked() && !self.is_empty() {
            self.warn(Warning::Interrupted)?;
        }
        let summary = Summary::of(&self.runs, baseline).with_versions(&self.header.allocators);
        for warning in doubts::of_figures(&summary) {
            self.warn(warning)?;
        }
        Ok(summary)
    }

    /// The name of the baseline, the first of `allocators`.
    ///
    /// # Errors
    /// There are none; the message is `otherwise`, after the warnings that say why.
    pub(crate) fn baseline(&self, allocators: &[Allocator], otherwise: &str) -> Result<String> {
        if allocators.is_empty() {
            self.print_warnings();
            if interrupt::asked() {
                bail!("interrupted before anything was measured");
            }
        }
        Ok(allocators.first().with_context(|| otherwise.to_owned())?.name.clone())
    }

    /// Checks that something was measured.
    ///
    /// # Errors
    /// There is no run.
    pub(crate) fn refuse_emptiness(&self, summary: &Summary) -> Result<()> {
        if !summary.allocators().is_empty() {
            return Ok(());
        }
        self.print_warnings();
        if interrupt::asked() {
            bail!("interrupted before anything was measured");
        }
        bail!("nothing could be measured; the warnings above say why");
    }

    /// Prints the warnings on stderr, and the path of the results file if there are results.
    pub(crate) fn print_warnings(&self) {
        for sentence in warning::sentences(&self.warnings) {
            eprintln!("warning: {sentence}");
        }
        if !self.is_empty() {
            eprintln!("results: {} (the order within rounds: --seed {})", self.path().display(), self.seed.0);
        }
    }

    /// Whether nothing was measured: the loop alone says nothing about an allocator.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.iter().all(|run| run.allocator == LOOP_ONLY)
    }

    /// The results file.
    pub(crate) fn path(&self) -> PathBuf {
        self.writer.path().to_path_buf()
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        if self.is_empty() {
            self.writer.discard();
        }
    }
}

#[cfg(test)]
mod tests;
