//! The folder in which one program of the suite works: its inputs are written and prepared before any run is measured.

use crate::program_suite::Program;
use crate::scratch_file::ScratchFolder;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder of one program; removed with the value.
pub(crate) struct Workshop(ScratchFolder);

impl Workshop {
    /// Makes the folder, writes the inputs of `program` into it, and runs its preparation.
    ///
    /// # Errors
    /// A file cannot be written, or the preparation fails; the message has its last words.
    pub(crate) fn of(program: &Program) -> Result<Self> {
        let folder = ScratchFolder::new(program.name).context("no folder for the inputs")?;
        for (name, contents) in program.inputs {
            fs::write(folder.path().join(name), contents()).with_context(|| format!("input {name}"))?;
        }
        if !program.prepare.is_empty() {
            let mut shell = Command::new("sh");
            shell.args(["-ec", program.prepare]).current_dir(folder.path()).env_remove("LD_PRELOAD");
            let output = shell.stdin(Stdio::null()).output().context("sh could not be started")?;
            if !output.status.success() {
                let messages = String::from_utf8_lossy(&output.stderr);
                bail!("its preparation ended with {}: {}", output.status, messages.lines().last().unwrap_or("no word"));
            }
        }
        Ok(Self(folder))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}
