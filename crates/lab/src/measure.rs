//! A measurement under way: what is being compared, the results file, the runs so far, and the doubts.
//!
//! Every command that measures shares this: it opens the file, prints warnings as they come, and ends in one place, so that Ctrl-C and failures
//! leave the same whole results behind as success.

use crate::allocator::Allocator;
use crate::machine::Machine;
use crate::order::Seed;
use crate::results::{Header, Outcome, Run, Writer};
use crate::statistics::ENOUGH_ROUNDS;
use crate::summary::Summary;
use crate::warning::{self, Warning};
use crate::{interrupt, results};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs and warnings of one measurement, on disk and in memory.
pub(crate) struct Measurement {
    writer: Writer,
    /// What was measured so far.
    pub(crate) runs: Vec<Run>,
    /// Reasons for doubt so far.
    pub(crate) warnings: Vec<Warning>,
    /// The header of the file.
    pub(crate) header: Header,
    /// What the order of runs within each round is drawn from.
    pub(crate) seed: Seed,
    given_up: BTreeSet<(String, String)>,
}

impl Measurement {
    /// Begins one; `what` enters the file's name unless `out` names it; a seed that is not given is drawn.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn begin(what: &str, out: Option<&Path>, seed: Option<u32>, allocators: &[Allocator]) -> Result<Self> {
        interrupt::listen();
        let seed = Seed::given_or_drawn(seed);
        let header = Header::new(Machine::here(), seed, allocators);
        let path = out.map_or_else(|| results::new_path(what), Path::to_path_buf);
        let writer = Writer::create(&path, &header)?;
        let mut measurement =
            Self { writer, runs: Vec::new(), warnings: Vec::new(), header, seed, given_up: BTreeSet::new() };
        for warning in Warning::of_machine(&measurement.header.machine.clone()) {
            measurement.warn(warning)?;
        }
        Ok(measurement)
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&mut self, subject: &str, allocator: &str, round: usize, outcome: Outcome) -> Result<()> {
        let run = Run { subject: subject.into(), allocator: allocator.into(), round, outcome };
        self.writer.run(&run)?;
        self.runs.push(run);
        Ok(())
    }

    /// Keeps a warning.
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

    /// Says so when `rounds` are too few to tell `contenders` apart.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn doubt_rounds(&mut self, rounds: usize, contenders: usize) -> Result<()> {
        if rounds >= ENOUGH_ROUNDS || contenders < 2 {
            return Ok(());
        }
        self.warn(Warning::FewRounds { rounds, enough: ENOUGH_ROUNDS })
    }

    /// Keeps the failure of a run and takes the pair out of the rounds to come.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn give_up(&mut self, subject: &str, allocator: &str, what: String) -> Result<()> {
        self.given_up.insert((subject.into(), allocator.into()));
        self.warn(Warning::Failed { subject: subject.into(), allocator: allocator.into(), what })
    }

    /// Whether the pair failed before.
    pub(crate) fn is_given_up(&self, subject: &str, allocator: &str) -> bool {
        self.given_up.contains(&(subject.into(), allocator.into()))
    }

    /// Notes the allocators with the versions they state.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn describe_allocators(&mut self, allocators: &[Allocator]) -> Result<()> {
        self.header.allocators = allocators.to_vec();
        self.writer.allocators(allocators)
    }

    /// Ends the measurement: adds what the figures themselves give reason to doubt.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(&mut self, baseline: &str) -> Result<Summary> {
        if interrupt::asked() {
            self.warn(Warning::Interrupted)?;
        }
        let summary = Summary::of(&self.runs, baseline).with_versions(&self.header.allocators);
        for warning in summary.doubts() {
            self.warn(warning)?;
        }
        Ok(summary)
    }

    /// Prints the warnings and where the results are, on stderr.
    pub(crate) fn print_warnings(&self) {
        for warning in warning::told(&self.warnings) {
            eprintln!("warning: {warning}");
        }
        eprintln!("results: {} (the order within rounds: --seed {})", self.path().display(), self.seed.0);
    }

    /// The results file.
    pub(crate) fn path(&self) -> PathBuf {
        self.writer.path().to_path_buf()
    }
}
