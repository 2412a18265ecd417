//! One run of a built-in workload: the lab starts itself as the workload's process and reads the record that it prints.

use crate::process::child::{self, End};
use crate::process::own_executable;
use crate::process::preload::Preload;
use crate::workload::workload_record::WorkloadRecord;
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Duration;

/// Runs `freestone workload ARGUMENTS` under `preload`.
///
/// # Errors
/// The process cannot be started, fails, takes longer than `limit`, or prints no record.
pub(crate) fn run(arguments: &[String], preload: Preload<'_>, limit: Duration) -> Result<WorkloadRecord> {
    let mut command = Command::new(own_executable::path()?);
    command.arg("workload").args(arguments);
    preload.apply(&mut command);
    let finished = child::run(&mut command, limit).context("the process of the workload could not be started")?;
    let message = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
    match finished.end {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => bail!("ended with {status}: {message}"),
        End::TimedOut => bail!("took longer than {} s and was ended; raise --timeout", limit.as_secs()),
        End::Interrupted => bail!("interrupted"),
    }
    serde_json::from_slice(&finished.stdout).with_context(|| format!("printed no record: {message}"))
}
