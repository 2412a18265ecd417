//! Runs the `freestone` command as a user would, without a terminal.
//!
//! # Safety
//! Between fork and exec, dispositions of signals are set, which is async-signal-safe.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "each test binary uses its share")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command, not yet started. It ignores no signal, even if the tests were started in the background of a script, which ignores some.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freestone"));
    command.args(arguments).current_dir(scratch());
    let ignore_nothing = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: sets a disposition to the default, which calls no code of this program.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure calls only signal.
    unsafe { command.pre_exec(ignore_nothing) };
    command
}

/// The command, run to its end.
pub(crate) fn freestone(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// A folder for what the tests make.
pub(crate) fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file in it, as an argument.
pub(crate) fn file(name: &str) -> String {
    scratch().join(name).to_str().unwrap().to_owned()
}

/// Whether a program can be found; a test that needs one that is not there says so and passes.
pub(crate) fn installed(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// What a command said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command said; it must have succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, said(output));
    said(output)
}

/// Every one of `parts` is in `text`.
pub(crate) fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

/// The command fails, and its message holds every one of `parts`.
pub(crate) fn refuses(arguments: &[&str], parts: &[&str]) {
    let output = freestone(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    holds(&said(&output), parts);
}
