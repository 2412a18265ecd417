//! The checkout that the lab was built from, its target folder, and building packages of it with cargo.

use crate::process::own_executable;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The checkout that this binary was built from, if it still exists.
pub(crate) fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    root.join("crates/capi/Cargo.toml").is_file().then_some(root)
}

/// The cargo target folder that contains the lab's binary: the parent of `release` or `debug`.
///
/// # Errors
/// The path of the binary is unknown.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let executable = own_executable::path()?;
    let folder = executable.parent().and_then(Path::parent).context("the freestone command lies in no folder")?;
    // Test binaries lie one level deeper, in `deps`.
    Ok(if folder.ends_with("release") || folder.ends_with("debug") {
        folder.parent().unwrap_or(folder).to_path_buf()
    } else {
        folder.to_path_buf()
    })
}

/// Runs `cargo build --release -p PACKAGE` in `workspace`, with its output in the file `log`.
///
/// # Errors
/// Cargo is missing or fails; the message names the log.
pub(crate) fn cargo_build(workspace: &Path, package: &str, target: &Path, log: &Path) -> Result<()> {
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("folder {} cannot be made", folder.display()))?;
    }
    let output = std::fs::File::create(log).with_context(|| format!("log {} cannot be written", log.display()))?;
    let status = Command::new("cargo")
        .args(["build", "--release", "-p", package])
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", target)
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("the log cannot be opened twice")?)
        .stderr(output)
        .status()
        .context("cargo could not be started; install Rust from rustup.rs, or build on a machine that has it")?;
    if !status.success() {
        bail!("{package} did not build; the compiler's messages are in {}", log.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::scratch_file::ScratchFile;
    use std::fs;

    #[test]
    fn the_checkout_contains_this_crate_and_the_target_folder_contains_this_binary() {
        assert!(root().unwrap().join("crates/lab/Cargo.toml").is_file());
        let target = target_folder().unwrap();
        let binary = own_executable::path().unwrap();
        assert!(
            binary.starts_with(&target) && !target.ends_with("debug") && !target.ends_with("release"),
            "{target:?}"
        );
    }

    #[test]
    fn a_package_that_does_not_build_is_named_with_its_log() {
        let log = ScratchFile::new("cargo-test");
        let error = cargo_build(Path::new("/"), "no-such-package", Path::new("/no/such/target"), log.path());
        let error = format!("{:#}", error.unwrap_err());
        assert!(
            error.contains("no-such-package did not build") && error.contains(log.path().to_str().unwrap()),
            "{error}"
        );
        assert!(!fs::read_to_string(log.path()).unwrap().is_empty(), "cargo's message is in the log");
    }
}
