//! A test program that starts itself again, for a process of its own.

use std::env;
use std::process::Command;

/// The environment variable with the command, in words, that runs programs of the platform, if this machine does not: an emulator. `cargo xtask platforms` sets it.
const RUNNER: &str = "TEST_RUNNER";

/// Whether this program runs under an emulator.
///
/// ```
/// assert!(!freestone_testkit::again::is_emulated());
/// ```
#[must_use]
pub fn is_emulated() -> bool {
    env::var_os(RUNNER).is_some()
}

/// A command that starts this program.
///
/// # Panics
/// If the system does not say which program this is.
///
/// ```
/// let help = freestone_testkit::again::this_program();
/// assert!(help.get_program().len() > 0);
/// ```
#[must_use]
pub fn this_program() -> Command {
    let program = env::current_exe().expect("a test program knows its path");
    let runner = env::var(RUNNER).unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}
