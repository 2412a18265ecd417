//! Running commands in the workspace.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or(xtask.clone(), PathBuf::from)
}

/// The folder cargo builds into.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A command in the workspace's root.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs a command; its output goes where ours goes.
pub(crate) fn check(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}; is it installed?"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// Runs `cargo` with arguments.
pub(crate) fn cargo(args: &[&str]) -> Result<()> {
    check(command(env!("CARGO"), args))
}

/// Runs a command and returns its standard output.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}; is it installed?"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds the release library and returns its path.
pub(crate) fn library() -> Result<PathBuf> {
    cargo(&["build", "--quiet", "--release", "--package", "freestone-capi"])?;
    Ok(target_dir().join("release/libfreestone.so"))
}

/// Whether a program can be started.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
