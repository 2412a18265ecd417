//! The folder in which one program of the suite works: its inputs are written and prepared before any run is measured.

use crate::process::child::{self, End};
use crate::program_suite::Program;
use crate::scratch_file::ScratchFolder;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The folder of one program; removed with the value.
pub(crate) struct Workshop(ScratchFolder);

impl Workshop {
    /// Makes the folder, writes the inputs of `program` into it, and runs its preparation, which may take as long as `limit`.
    ///
    /// # Errors
    /// A file cannot be written, or the preparation fails or takes longer; the message has its last words.
    pub(crate) fn of(program: &Program, limit: Duration) -> Result<Self> {
        let folder = ScratchFolder::new(program.name).context("no folder for the inputs")?;
        for (name, contents) in program.inputs {
            fs::write(folder.path().join(name), contents()).with_context(|| format!("input {name}"))?;
        }
        if !program.prepare.is_empty() {
            prepare(program.prepare, folder.path(), limit).context("its preparation")?;
        }
        Ok(Self(folder))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Runs shell commands in a folder.
fn prepare(commands: &str, folder: &Path, limit: Duration) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(folder).env_remove("LD_PRELOAD");
    let finished = child::run(&mut shell, limit).context("sh could not be started")?;
    match finished.end {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) => {
            let messages = String::from_utf8_lossy(&finished.stderr);
            bail!("ended with {status}: {}", messages.lines().last().unwrap_or("no word"))
        }
        End::TimedOut => bail!("took longer than {} s and was ended; raise --timeout", limit.as_secs()),
        End::Interrupted => bail!("interrupted"),
    }
}
