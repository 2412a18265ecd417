//! Results on disk: one JSON value a line, appended after every run, so that nothing measured is ever lost.
//!
//! The first line says what the file is (`format`, `version`), on which machine it was measured, and by which command; then come runs and
//! warnings in the order they happened. A file cut short by a crash loses its last line at most, and says so when it is read.

use crate::allocator::Allocator;
use crate::launch::Launched;
use crate::machine::Machine;
use crate::order::Seed;
use crate::record::WorkloadRecord;
use crate::warning::Warning;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the format, in every file's first line.
const FORMAT: &str = "freestone-lab-results";

/// Version of the format; a file of another one is not read.
pub(crate) const VERSION: u32 = 1;

/// The first line of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// [`FORMAT`].
    pub(crate) format: String,
    /// [`VERSION`].
    pub(crate) version: u32,
    /// The command line that measured.
    pub(crate) command: Vec<String>,
    /// When, in seconds since 1970.
    pub(crate) started_unix: u64,
    /// Version of the lab.
    pub(crate) lab: String,
    /// Where.
    pub(crate) machine: Machine,
    /// What the order of runs within each round is drawn from; files of older labs have none.
    #[serde(default)]
    pub(crate) seed: Option<Seed>,
    /// What was compared, the baseline first.
    pub(crate) allocators: Vec<Allocator>,
}

impl Header {
    /// A header for a measurement that begins now.
    pub(crate) fn new(machine: Machine, seed: Seed, allocators: &[Allocator]) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            command: std::env::args().collect(),
            started_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs()),
            lab: env!("CARGO_PKG_VERSION").into(),
            machine,
            seed: Some(seed),
            allocators: allocators.to_vec(),
        }
    }
}

/// One run of one subject under one allocator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The workload, or the command as one would type it.
    pub(crate) subject: String,
    /// The allocator's name.
    pub(crate) allocator: String,
    /// Which round.
    pub(crate) round: usize,
    /// What came of it.
    pub(crate) outcome: Outcome,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// A workload's record.
    Workload(Box<WorkloadRecord>),
    /// A command's figures.
    Command(Launched),
    /// Instructions in an operation, by callgrind.
    Instructions {
        /// Instructions of the measured section.
        instructions: u64,
        /// Its operations.
        operations: u64,
    },
    /// A figure of an experiment, by name with unit.
    Figure {
        /// Its name.
        name: String,
        /// Its value.
        value: f64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Run(Run),
    Warning(Warning),
    Allocators(Vec<Allocator>),
}

/// A file being written.
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Creates the file, with its folder, and writes the header.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub(crate) fn create(path: &Path, header: &Header) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).with_context(|| format!("folder {} cannot be made", folder.display()))?;
        }
        let file = File::create(path)
            .with_context(|| format!("results file {} cannot be written; name another with --out", path.display()))?;
        let mut writer = Self { file, path: path.to_path_buf() };
        writer.line(&serde_json::to_string(header)?)?;
        Ok(writer)
    }

    /// Appends a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn run(&mut self, run: &Run) -> Result<()> {
        self.line(&serde_json::to_string(&Line::Run(run.clone()))?)
    }

    /// Appends a warning.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn warning(&mut self, warning: &Warning) -> Result<()> {
        self.line(&serde_json::to_string(&Line::Warning(warning.clone()))?)
    }

    /// Appends the allocators with the versions they stated once they ran.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn allocators(&mut self, allocators: &[Allocator]) -> Result<()> {
        self.line(&serde_json::to_string(&Line::Allocators(allocators.to_vec()))?)
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.file, "{text}").with_context(|| format!("results file {} cannot be written", self.path.display()))
    }
}

/// A file's contents.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// Its first line.
    pub(crate) header: Header,
    /// Its runs, in order.
    pub(crate) runs: Vec<Run>,
    /// Its warnings, and those that come from reading it.
    pub(crate) warnings: Vec<Warning>,
}

/// Reads a file.
///
/// # Errors
/// It is not there, is not a results file, or is of another version.
pub(crate) fn read(path: &Path) -> Result<Results> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("results file {shown} cannot be read"))?;
    let mut lines = text.lines();
    let first: serde_json::Value = lines
        .next()
        .and_then(|line| serde_json::from_str(line).ok())
        .with_context(|| format!("{shown} is not a results file of this lab: its first line is no header"))?;
    if first["format"] != FORMAT {
        bail!("{shown} is not a results file of this lab: its first line names no such format");
    }
    if first["version"] != VERSION {
        bail!(
            "{shown} has version {} of the results format, and this lab reads version {VERSION}; make the report with the \
             freestone that measured it, or measure again",
            first["version"]
        );
    }
    let header =
        serde_json::from_value(first).with_context(|| format!("{shown}: its header is damaged; measure again"))?;
    let mut results = Results { header, runs: Vec::new(), warnings: Vec::new() };
    for (number, line) in lines.enumerate() {
        match serde_json::from_str(line) {
            Ok(Line::Run(run)) => results.runs.push(run),
            Ok(Line::Warning(warning)) => results.warnings.push(warning),
            Ok(Line::Allocators(allocators)) => results.header.allocators = allocators,
            Err(_) => results.warnings.push(Warning::Missing {
                what: format!(
                    "{shown}: line {} is cut short or damaged and was left out; the other runs are whole",
                    number + 2
                ),
            }),
        }
    }
    Ok(results)
}

/// A name for a new file: the folder of results, the time, what was measured.
pub(crate) fn new_path(what: &str) -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let stamp = timestamp(seconds).replace([':', ' '], "-");
    let name = |serial: &str| PathBuf::from(format!("freestone-results/{stamp}-{what}{serial}.jsonl"));
    // Two measurements may begin within a second; neither may overwrite the other.
    let later = (2..).map(|serial| name(&format!("-{serial}")));
    std::iter::once(name("")).chain(later).find(|path| !path.exists()).unwrap_or_else(|| name(""))
}

/// A UTC time as `2026-11-21 01:02:03`.
pub(crate) fn timestamp(unix_seconds: u64) -> String {
    let (days, rest) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Source: Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests;
