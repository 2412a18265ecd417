//! The checkout that this command was built in and runs from, and building packages of it with cargo.
//!
//! A command that was installed elsewhere has no checkout, even if the one it was built in still exists: it never runs cargo, and it writes neither
//! into its prefix nor into the source.

use crate::process::own_executable;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Words that cargo prints when it gets a package neither from the registry nor from its own cache.
const NOT_FETCHED: [&str; 3] = ["failed to download", "failed to fetch", "--offline"];

/// A checkout, and the cargo target folder in it that contains this command.
pub(crate) struct Checkout {
    /// The folder with the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// The parent of `release` or `debug`.
    target: PathBuf,
}

impl Checkout {
    /// The checkout that this command runs from; `None` if it is installed.
    pub(crate) fn of_this_command() -> Option<Self> {
        // A packaged command is the same wherever it was built, so that it does not contain the checkout's path either.
        if option_env!("FREESTONE_PACKAGED").is_some() {
            return None;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
        let target = target_of(&own_executable::path().ok()?)?;
        root.join("crates/capi/Cargo.toml").is_file().then_some(Self { root, target })
    }

    /// Runs `cargo build --release -p PACKAGE` in the checkout's main workspace, and returns the folder with what was built.
    ///
    /// # Errors
    /// Cargo is missing or fails; the message names the log.
    pub(crate) fn build(&self, package: &str) -> Result<PathBuf> {
        cargo_build(&self.root, package, &self.target, &self.log(package))?;
        Ok(self.built())
    }

    /// The folder with what [`build`](Self::build) has built.
    pub(crate) fn built(&self) -> PathBuf {
        self.target.join("release")
    }

    /// Builds a package of the workspace in `crates/peers`, and returns the folder with what was built.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub(crate) fn build_beside(&self, package: &str) -> Result<PathBuf> {
        let target = self.target.join("peers");
        cargo_build(&self.root.join("crates/peers"), package, &target, &self.log(package))?;
        Ok(target.join("release"))
    }

    fn log(&self, package: &str) -> PathBuf {
        self.target.join(format!("logs/{package}.log"))
    }
}

/// The cargo target folder that contains `executable`, if cargo has put it there: cargo leaves a lock file beside it.
fn target_of(executable: &Path) -> Option<PathBuf> {
    let folder = executable.parent()?;
    // Test binaries lie one level deeper.
    let profile = if folder.ends_with("deps") { folder.parent()? } else { folder };
    profile.join(".cargo-lock").is_file().then(|| profile.parent().map(Path::to_path_buf))?
}

fn cargo_build(workspace: &Path, package: &str, target: &Path, log: &Path) -> Result<()> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("folder {} cannot be made", folder.display()))?;
    }
    let output = File::create(log).with_context(|| format!("log {} cannot be written", log.display()))?;
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
        bail!("{package} {}, in {}", reason(&fs::read_to_string(log).unwrap_or_default()), log.display());
    }
    Ok(())
}

/// What keeps a package from being built, by what cargo printed, up to the name of the log.
fn reason(log: &str) -> &'static str {
    if NOT_FETCHED.iter().any(|words| log.contains(words)) {
        "is made of sources that cargo could not download: try again where the package registry can be reached, or take a library of \
         this allocator that you have (--allocator NAME=PATH.so); cargo's messages are"
    } else {
        "did not build; the compiler's messages are"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_file::ScratchFile;

    #[test]
    fn a_test_binary_runs_from_the_checkout_that_contains_this_crate() {
        let checkout = Checkout::of_this_command().unwrap();
        assert!(checkout.root.join("crates/lab/Cargo.toml").is_file());
        let binary = own_executable::path().unwrap();
        let target = &checkout.target;
        assert!(binary.starts_with(target) && !target.ends_with("debug") && !target.ends_with("release"), "{target:?}");
    }

    #[test]
    fn only_a_file_that_cargo_has_put_there_lies_in_a_target_folder() {
        let prefix = ScratchFile::new("prefix-test").unwrap();
        let folder = prefix.path().join("release");
        fs::create_dir_all(folder.join("deps")).unwrap();
        assert_eq!(target_of(&folder.join("freestone")), None);
        fs::write(folder.join(".cargo-lock"), "").unwrap();
        let target = Some(prefix.path().to_path_buf());
        assert_eq!(
            (target_of(&folder.join("freestone")), target_of(&folder.join("deps/lab"))),
            (target.clone(), target)
        );
        fs::remove_dir_all(prefix.path()).unwrap();
    }

    #[test]
    fn a_package_that_does_not_build_is_named_with_its_log() {
        let log = ScratchFile::new("cargo-test").unwrap();
        let error = cargo_build(Path::new("/"), "no-such-package", Path::new("/no/such/target"), log.path());
        let error = format!("{:#}", error.unwrap_err());
        assert!(
            error.contains("no-such-package did not build") && error.contains(log.path().to_str().unwrap()),
            "{error}"
        );
        assert!(!fs::read_to_string(log.path()).unwrap().is_empty(), "cargo's message is in the log");
    }
}
