//! Rounds of commands: a warm-up under every allocator, then interleaved rounds, each run in a process of its own.
//!
//! Each run of the warm-up is watched to its exit, and the library is looked up among its mappings: an allocator that was not in the process
//! gets no figures. Exit statuses and outputs are compared with those of the first run. A command may be the client of a server; then the server
//! runs under the allocators, and the client under none.

use crate::allocator::description::Allocator;
use crate::allocator::preloading::{self, Obstacle};
use crate::measure::measurement::Measurement;
use crate::measure::order;
use crate::process::command_file::{self, Refusal};
use crate::process::command_run::{self, CommandRun, Surroundings};
use crate::process::interrupt;
use crate::process::server::{self, Server};
use crate::results::outcome::Outcome;
use crate::results::warning::Warning;
use anyhow::Result;
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A command to measure.
pub(crate) struct CommandJob {
    /// Its name in results.
    pub(crate) subject: String,
    /// The command and its arguments: the client, if there is a server.
    pub(crate) command: Vec<OsString>,
    /// The server that runs under the allocators in place of the command.
    pub(crate) server: Option<Server>,
    /// The file that each run of the command reads; `None` for no input.
    pub(crate) input: Option<PathBuf>,
    /// The folder to run in; `None` for the lab's own.
    pub(crate) folder: Option<PathBuf>,
    /// How long one run may take.
    pub(crate) limit: Duration,
    /// Whether runs that fail are measured too; `None` where the user has no choice.
    pub(crate) ignore_failure: Option<bool>,
}

/// A command after its warm-up.
pub(crate) struct WarmCommand<'a> {
    job: &'a CommandJob,
    /// The allocators that proved to be in the process.
    pub(crate) allocators: Vec<Allocator>,
    expected: Expectation,
}

/// What every run must agree with.
struct Expectation {
    exit: i32,
    /// Digest of standard output; `None` if the output differs from run to run.
    output_digest: Option<u64>,
}

impl Expectation {
    fn differs(&self, run: &CommandRun) -> bool {
        run.record.exit != self.exit || self.output_digest.is_some_and(|digest| digest != run.output_digest)
    }
}

impl CommandJob {
    /// The program that runs under the allocators: the server, or else the command.
    fn watched_program(&self) -> &OsString {
        self.server.as_ref().map_or(&self.command[0], |server| &server.words[0])
    }

    /// Checks that the programs exist.
    ///
    /// # Errors
    /// One does not, or cannot be executed.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        command_file::find(self.watched_program()).and(command_file::find(&self.command[0])).map(|_| ())
    }

    /// Runs the command once under each candidate, and keeps those that proved to be in the process.
    ///
    /// # Errors
    /// The command cannot be run at all, or results cannot be written.
    pub(crate) fn warm_up(&self, candidates: Vec<Allocator>, measurement: &mut Measurement) -> Result<WarmCommand<'_>> {
        let mut expected = None;
        let mut allocators = Vec::new();
        for allocator in self.without_obstacle(candidates, measurement)? {
            if interrupt::asked() {
                break;
            }
            let run = match self.run(&allocator, true) {
                Ok(run) => run,
                Err(_) if interrupt::asked() => break,
                // A command that cannot be run under one allocator cannot be run under any.
                Err(error) if error.is::<Refusal>() => return Err(error),
                Err(error) => {
                    measurement.give_up(&self.subject, &allocator.name, format!("{error:#}"))?;
                    continue;
                }
            };
            if !self.is_accepted(&run, &allocator, measurement)? {
                continue;
            }
            let expected = expected.get_or_insert_with(|| self.first_expectation(&allocator, &run));
            if expected.differs(&run) {
                let (subject, allocator) = (self.subject.clone(), allocator.name.clone());
                measurement.warn(Warning::ResultsDiffer { subject, allocator })?;
            }
            allocators.push(allocator);
        }
        let expected = expected.unwrap_or(Expectation { exit: 0, output_digest: None });
        Ok(WarmCommand { job: self, allocators, expected })
    }

    /// Whether the run of a warm-up may be followed by others under its allocator; records why not.
    fn is_accepted(&self, run: &CommandRun, allocator: &Allocator, measurement: &mut Measurement) -> Result<bool> {
        let (subject, name) = (self.subject.clone(), allocator.name.clone());
        if run.record.was_mapped == Some(false) {
            let why = "it was not among the mappings of the command at its exit".into();
            measurement.warn(Warning::NotInProcess { subject, allocator: name, why })?;
            return Ok(false);
        }
        if let Some(what) = self.failure(run) {
            measurement.give_up(&subject, &name, what)?;
            return Ok(false);
        }
        if allocator.library.is_some() && run.record.was_mapped.is_none() {
            let known = "so whether each allocator was in it is not known";
            let why = "the kernel forbids tracing (ptrace), as in some containers";
            measurement.leave_out([format!("{subject}: the command could not be watched, {known}: {why}")])?;
        }
        Ok(true)
    }

    /// How a run failed that is not to be measured; `None` if it may be.
    fn failure(&self, run: &CommandRun) -> Option<String> {
        let colon = if run.last_lines.is_empty() { "" } else { ": " };
        let what = || {
            let ending = run.record.ending();
            let way_out = self.ignore_failure.map_or("", |_| " (--ignore-failure measures it all the same)");
            format!("{ending}{colon}{}{way_out}", run.last_lines)
        };
        (run.record.exit != 0 && self.ignore_failure != Some(true)).then(what)
    }

    /// Drops the allocators that cannot be preloaded into the command: all but the system's.
    fn without_obstacle(&self, allocators: Vec<Allocator>, measurement: &mut Measurement) -> Result<Vec<Allocator>> {
        let path = command_file::find(self.watched_program())?;
        // Rights that a file gives may be no more than the user has: the warm-up sees whether the library is there.
        let obstacle = preloading::obstacle(&path).filter(|obstacle| *obstacle != Obstacle::Privileged);
        let Some(obstacle) = obstacle else { return Ok(allocators) };
        let (kept_out, others): (Vec<_>, Vec<_>) = allocators.into_iter().partition(|one| one.library.is_some());
        for allocator in kept_out {
            let (subject, why) = (self.subject.clone(), obstacle.to_string());
            measurement.warn(Warning::NotInProcess { subject, allocator: allocator.name, why })?;
        }
        Ok(others)
    }

    /// What later runs must agree with, from the first run and one more: an output that differs between the two is not compared.
    fn first_expectation(&self, allocator: &Allocator, run: &CommandRun) -> Expectation {
        let again = self.run(allocator, false).ok();
        let steady = again.is_some_and(|again| again.output_digest == run.output_digest);
        Expectation { exit: run.record.exit, output_digest: steady.then_some(run.output_digest) }
    }

    fn run(&self, allocator: &Allocator, watch: bool) -> Result<CommandRun> {
        let surroundings =
            Surroundings { input: self.input.as_deref(), folder: self.folder.as_deref(), limit: self.limit };
        match &self.server {
            Some(server) => server::run(server, &self.command, allocator.preload(), surroundings),
            None => {
                let watch = watch && allocator.library.is_some();
                command_run::run_captured(&self.command, allocator.preload(), surroundings, watch)
            }
        }
    }
}

impl WarmCommand<'_> {
    /// Runs the command under every allocator, round by round, and records the outcomes. `bar` advances by one for each run.
    ///
    /// # Errors
    /// Results cannot be written.
    pub(crate) fn measure(&self, rounds: usize, bar: &ProgressBar, measurement: &mut Measurement) -> Result<()> {
        let subject = &self.job.subject;
        for round in 0..rounds {
            for turn in order::of_round(measurement.seed, subject, round, self.allocators.len()) {
                if interrupt::asked() {
                    return Ok(());
                }
                let allocator = &self.allocators[turn];
                bar.set_message(format!("{subject} under {}", allocator.name));
                if !measurement.is_given_up(subject, &allocator.name) {
                    self.measure_one(allocator, round, measurement)?;
                }
                bar.inc(1);
            }
        }
        Ok(())
    }

    fn measure_one(&self, allocator: &Allocator, round: usize, measurement: &mut Measurement) -> Result<()> {
        let (subject, name) = (self.job.subject.clone(), allocator.name.clone());
        match self.job.run(allocator, false) {
            Ok(run) => {
                if let Some(what) = self.job.failure(&run) {
                    return measurement.give_up(&subject, &name, what);
                }
                if self.expected.differs(&run) {
                    let (subject, allocator) = (subject.clone(), name.clone());
                    measurement.warn(Warning::ResultsDiffer { subject, allocator })?;
                }
                measurement.keep(&subject, &name, round, Outcome::Command(run.record))
            }
            Err(_) if interrupt::asked() => Ok(()),
            Err(error) => measurement.give_up(&subject, &name, format!("{error:#}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command_record::CommandRecord;

    fn run(exit: i32, output_digest: u64) -> CommandRun {
        let record = CommandRecord { exit, ..CommandRecord::example(1, 1) };
        CommandRun { record, output_digest, last_lines: String::new() }
    }

    #[test]
    fn a_run_differs_in_its_status_or_in_an_output_that_is_steady() {
        let expected = Expectation { exit: 0, output_digest: Some(7) };
        assert!(!expected.differs(&run(0, 7)) && expected.differs(&run(0, 8)) && expected.differs(&run(1, 7)));
        let unsteady = Expectation { exit: 0, output_digest: None };
        assert!(!unsteady.differs(&run(0, 8)) && unsteady.differs(&run(1, 8)));
    }

    #[test]
    fn an_option_is_advised_only_where_there_is_one() {
        let (subject, command) = (String::new(), Vec::new());
        let (server, input, folder, limit) = (None, None, None, Duration::from_secs(1));
        let mut job = CommandJob { subject, command, server, input, folder, limit, ignore_failure: None };
        let mut failure = |ignore_failure| {
            job.ignore_failure = ignore_failure;
            job.failure(&run(3, 7))
        };
        assert_eq!(failure(None).unwrap(), "exit status 3");
        assert!(failure(Some(false)).unwrap().contains("--ignore-failure"));
        assert_eq!(failure(Some(true)), None);
    }
}
