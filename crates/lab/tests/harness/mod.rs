//! Runs the `freestone` command as a user would, without a terminal.
//!
//! # Safety
//! Between fork and exec only `signal` and `prctl` are called, which are async-signal-safe.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "each test binary uses its share")]

use std::fs;
use std::io;
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

/// A command whose process, and those that it starts, may not trace others: the kernel refuses with EPERM.
pub(crate) fn without_permission_to_trace(arguments: &[&str]) -> Output {
    let load_number = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let is_ptrace = libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_ptrace as u32 };
    let answer = |k| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k };
    let refuse = answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let mut filter = [load_number, is_ptrace, refuse, answer(libc::SECCOMP_RET_ALLOW)];
    let mut command = command(arguments);
    let refuse_tracing = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the call takes numbers only.
        let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
        // SAFETY: the program and its filter are locals, which the kernel copies.
        let is_set = is_bound && unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) } == 0;
        if is_set { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: the closure only calls `prctl`, which is async-signal-safe.
    unsafe { command.pre_exec(refuse_tracing) };
    command.output().expect("the kernel has system call filters")
}

/// The release library; the command that runs from the checkout builds it.
pub(crate) fn library() -> PathBuf {
    succeeded(&freestone(&["run", "--", "true"]));
    let binary = Path::new(env!("CARGO_BIN_EXE_freestone"));
    binary.parent().unwrap().with_file_name("release").join("libfreestone.so")
}

/// The program `c/leaks.cpp`, built once with these options; `None` if it cannot be.
pub(crate) fn leaks_program(name: &str, options: &[&str]) -> Option<PathBuf> {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = scratch().join(name);
    let mut build = Command::new("g++");
    build.args(["-O1", "-g", "-pthread"]).args(options).arg("-I").arg(lab.join("../capi/include"));
    let built = build.arg("-o").arg(&program).arg(lab.join("tests/c/leaks.cpp")).status();
    built.is_ok_and(|status| status.success()).then_some(program)
}

/// The folder for files of the tests.
pub(crate) fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab");
    fs::create_dir_all(&folder).unwrap();
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

/// Compiles a C program; `None` if there is no compiler.
pub(crate) fn program(name: &str, source: &str) -> Option<String> {
    program_with(name, source, &["-O1", "-fno-builtin", "-pthread"])
}

/// Compiles a C program with these flags; `None` if there is no compiler.
pub(crate) fn program_with(name: &str, source: &str, flags: &[&str]) -> Option<String> {
    if !installed("cc") {
        return None;
    }
    let (text, path) = (file(&format!("{name}.c")), file(name));
    fs::write(&text, source).expect("the folder can be written");
    let compiled = Command::new("cc").args(flags).args(["-o", &path, &text]).status();
    assert!(compiled.expect("a compiler").success());
    Some(path)
}

/// The standard output of a command that must have succeeded.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = freestone(arguments);
    succeeded(&output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What `freestone trace --json` says of a trace.
pub(crate) fn figures(trace: &str) -> serde_json::Value {
    serde_json::from_str(&printed(&["trace", trace, "--json"])).expect("JSON")
}

/// The names of files whose names begin with that of `path`.
pub(crate) fn names_beside(path: &str) -> Vec<String> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).expect("a name");
    let entries = fs::read_dir(Path::new(path).with_file_name(".")).expect("the folder can be read").flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|other| other.starts_with(name)).collect()
}
