//! The results file: one JSON value per line, appended after every run, so that no result is ever lost.
//!
//! The first line is the header; runs and warnings follow in the order in which they happened. A file that a crash cut short loses its last
//! line at most, and reading it adds a warning that says so.

use crate::allocator::description::Allocator;
use crate::results::file_header::{FORMAT, Header, VERSION};
use crate::results::outcome::Run;
use crate::results::timestamp;
use crate::results::warning::Warning;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of results files that are not named.
const FOLDER: &str = "freestone-results";

/// A line after the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Run(Run),
    Warning(Warning),
    Allocators(Vec<Allocator>),
}

/// A results file being written.
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Creates the file and its folder, and writes the header.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub(crate) fn create(path: &Path, header: &Header) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)
                .with_context(|| format!("folder {} cannot be created; name another with --out", folder.display()))?;
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

    /// Appends the allocators with the versions that they stated when they ran; they replace those of the header.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn allocators(&mut self, allocators: &[Allocator]) -> Result<()> {
        self.line(&serde_json::to_string(&Line::Allocators(allocators.to_vec()))?)
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, unless it is a device or a link, and the folder of results if nothing else is in it.
    pub(crate) fn discard(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|facts| facts.is_file()) {
            let _ = fs::remove_file(&self.path);
        }
        if self.path.parent() == Some(Path::new(FOLDER)) {
            let _ = fs::remove_dir(FOLDER);
        }
    }

    fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.file, "{text}")
            .with_context(|| format!("results file {} cannot be written; is the disk full?", self.path.display()))
    }
}

/// The contents of a results file.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// The first line.
    pub(crate) header: Header,
    /// The runs, in the order of the file.
    pub(crate) runs: Vec<Run>,
    /// The warnings, and those that reading the file added.
    pub(crate) warnings: Vec<Warning>,
}

/// Reads a results file.
///
/// # Errors
/// The file cannot be read, is not a results file, or has another version.
pub(crate) fn read(path: &Path) -> Result<Results> {
    let shown = path.display();
    // Not as text: a file that was cut short may end within a letter.
    let bytes = fs::read(path).with_context(|| format!("results file {shown} cannot be read"))?;
    let mut lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|&byte| byte == b'\n');
    let first: serde_json::Value = lines
        .next()
        .and_then(|line| serde_json::from_slice(line).ok())
        .with_context(|| format!("{shown} is not a results file of this lab: its first line is not a header"))?;
    if first["format"] != FORMAT {
        bail!("{shown} is not a results file of this lab: its first line does not name the format");
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
        match serde_json::from_slice(line) {
            Ok(Line::Run(run)) => results.runs.push(run),
            Ok(Line::Warning(warning)) => results.warnings.push(warning),
            Ok(Line::Allocators(allocators)) => results.header.allocators = allocators,
            Err(_) => results.warnings.push(Warning::Missing {
                what: format!(
                    "{shown}: line {} is cut short or damaged and was left out; the other lines are complete",
                    number + 2
                ),
            }),
        }
    }
    Ok(results)
}

/// A name for a new file: in the folder `freestone-results`, with the time, and with `what` is measured.
pub(crate) fn new_path(what: &str) -> PathBuf {
    let seconds = timestamp::now();
    let stamp = timestamp::utc(seconds).replace([':', ' '], "-");
    let name = |serial: &str| Path::new(FOLDER).join(format!("{stamp}-{what}{serial}.jsonl"));
    // Two measurements may begin within the same second, and neither may overwrite the other.
    let later = (2..).map(|serial| name(&format!("-{serial}")));
    std::iter::once(name("")).chain(later).find(|path| !path.exists()).unwrap_or_else(|| name(""))
}

#[cfg(test)]
mod tests;
