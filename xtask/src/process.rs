//! Runs other programs in the workspace's folder and reports the one that failed.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |at| root().join(at))
}

/// Where cargo keeps what it downloads.
pub(crate) fn cargo_home() -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    std::env::var_os("CARGO_HOME").map_or_else(|| home().join(".cargo"), PathBuf::from)
}

/// A command in the workspace's folder.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Cargo, in the workspace's folder.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), arguments)
}

/// Cargo, for other platforms. It builds in a folder of its own, because two builds in one wait for each other, and other platforms share nothing with
/// this one but build scripts.
pub(crate) fn cargo_for_platforms(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.env("CARGO_TARGET_DIR", platforms_target());
    command
}

/// That folder.
pub(crate) fn platforms_target() -> PathBuf {
    target().join("platforms")
}

/// Builds the release library, for preloading, for counting the hot paths and for the C tests.
pub(crate) fn build_library() -> Result<()> {
    run(&mut cargo(&["build", "--release", "--package", "freestone-capi"]))
}

/// Builds a release example, for its machine code. Cargo compiles what the package's tests need as well, here without optimizing it.
pub(crate) fn build_example(package: &str, example: &str, more: &[&str]) -> Result<()> {
    const FOR_TESTS: [&str; 7] =
        ["proptest", "regex-syntax", "rand", "num-traits", "chacha20", "hashbrown", "freestone-testkit"];
    let mut build = cargo(&["build", "--release", "--package", package, "--example", example]);
    run(leave_unoptimized(&mut build, &FOR_TESTS).args(more))
}

/// Has a release build leave these packages as they are written.
pub(crate) fn leave_unoptimized<'a>(build: &'a mut Command, packages: &[&str]) -> &'a mut Command {
    for name in packages {
        build.args(["--config", &format!("profile.release.package.{name}.opt-level=0")]);
    }
    build
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}: is it installed?"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}: is it installed?"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the standard library of a target, or its `core`, is installed.
pub(crate) fn has_target(name: &str) -> bool {
    let installed = output(&mut command("rustup", &["target", "list", "--installed"])).unwrap_or_default();
    installed.lines().any(|line| line == name)
}

/// Whether a program can be found.
pub(crate) fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|at| at.join(program).is_file()))
}
