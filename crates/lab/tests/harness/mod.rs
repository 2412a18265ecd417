//! Runs the `freestone` command as a user would, without a terminal.
//!
//! # Safety
//! Between fork and exec only `signal` is called, which is async-signal-safe.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "each test binary uses its share")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command, not yet started. It ignores no signal: a script that starts the tests in the background would pass on some that it ignores.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freestone"));
    command.args(arguments).current_dir(scratch());
    let ignore_nothing = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: the default disposition runs no code of this process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure only calls `signal`, which is async-signal-safe.
    unsafe { command.pre_exec(ignore_nothing) };
    command
}

/// The command, run to its end.
pub(crate) fn freestone(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// The release library; the command that runs from the checkout builds it.
pub(crate) fn library() -> PathBuf {
    succeeded(&freestone(&["run", "--", "true"]));
    let binary = Path::new(env!("CARGO_BIN_EXE_freestone"));
    binary.parent().unwrap().with_file_name("release").join("libfreestone.so")
}

/// The folder for files of the tests.
pub(crate) fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file in that folder, as an argument.
pub(crate) fn file(name: &str) -> String {
    scratch().join(name).to_str().unwrap().to_owned()
}

/// Whether `program` is installed; if not, the test that needs it prints a note and passes.
pub(crate) fn installed(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// The standard error of a command.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The standard error of a command that must have succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, said(output));
    said(output)
}

/// Checks that `text` contains all `parts`.
pub(crate) fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

/// Checks that the command fails with a message that contains all `parts`.
pub(crate) fn refuses(arguments: &[&str], parts: &[&str]) {
    let output = freestone(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    holds(&said(&output), parts);
}
