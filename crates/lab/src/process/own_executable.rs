//! The lab's own executable: the lab starts itself for workloads and for the launcher.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// Path of the lab's executable.
///
/// # Errors
/// The kernel does not tell, for example because /proc is not mounted.
pub(crate) fn path() -> Result<PathBuf> {
    std::env::current_exe().context("the path of the freestone command is unknown; is /proc mounted?")
}
