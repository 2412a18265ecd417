//! Signals sent to the `freestone` command, and commands that cannot be run: nothing is left behind, and the exit status is the one that a
//! shell gives.
//!
//! No test waits for a fixed time: a command reports on its standard output, or in a named pipe, that it is ready and which signals it received.
//!
//! # Safety
//! `kill` is called with the number of a process that has not been waited for; the calls for the terminal use descriptors that this file opened.
#![allow(unsafe_code)]

mod harness;

use harness::{command, file, freestone, holds, said, scratch};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// The signals that `run` passes on.
const PASSED_ON: [(i32, &str); 6] = [
    (libc::SIGHUP, "HUP"),
    (libc::SIGINT, "INT"),
    (libc::SIGQUIT, "QUIT"),
    (libc::SIGTERM, "TERM"),
    (libc::SIGUSR1, "USR1"),
    (libc::SIGUSR2, "USR2"),
];

/// A number of rounds that are never over, even if nothing is done in them.
const ENDLESS: &str = "1000000000000000";

/// An empty folder for the temporary files of one run.
fn empty(name: &str) -> PathBuf {
    let folder = scratch().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn left_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn send(lab: &Child, signal: i32) {
    // SAFETY: the child has not been waited for, so the number belongs to it.
    assert_eq!(unsafe { libc::kill(lab.id() as i32, signal) }, 0);
}

/// Starts `freestone run` with a shell script; returns it with its standard output.
fn run_script(script: &str, temporary: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut lab = command(&["run", "-a", "system", "--", "sh", "-c", script])
        .env("TMPDIR", temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(lab.stdout.take().unwrap());
    (lab, stdout)
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// A script that reports the `signals` that it receives, and ends with status 7 at SIGALRM.
fn says(signals: &[&str]) -> String {
    let traps: String = signals.iter().map(|name| format!("trap 'echo got {name}' {name}; ")).collect();
    // A signal interrupts `wait`; the sleeping process does not hold the pipes open. It is in the terminal's foreground group as well: what the
    // keyboard sends is ignored when it is started, so that it ignores that from its first moment on.
    format!(
        "trap '' INT QUIT; sleep 1000 >/dev/null 2>&1 & sleeper=$!; \
         {traps} trap 'echo got the end; kill $sleeper; exit 7' ALRM; \
         echo ready; while kill -0 $sleeper; do wait $sleeper; done"
    )
}

#[test]
fn run_passes_every_signal_on_and_ends_when_the_command_does() {
    let temporary = empty("passed-on");
    let names = PASSED_ON.map(|(_, name)| name);
    let (mut lab, mut stdout) = run_script(&format!("echo $$; {}", says(&names)), &temporary);
    let shell: i32 = line(&mut stdout).parse().unwrap();
    assert_eq!(line(&mut stdout), "ready");
    // Each twice: a second Ctrl-C must not end the lab while its command runs.
    for (signal, name) in PASSED_ON.into_iter().chain(PASSED_ON) {
        send(&lab, signal);
        assert_eq!(line(&mut stdout), format!("got {name}"));
    }
    // SAFETY: the shell runs until it receives this signal, so the number belongs to it.
    assert_eq!(unsafe { libc::kill(shell, libc::SIGALRM) }, 0);
    assert_eq!(line(&mut stdout), "got the end");
    let mut told = String::new();
    lab.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(7), "{told}");
    holds(&told, &["exit status 7", "peak RSS"]);
    assert!(left_in(&temporary).is_empty(), "{:?}", left_in(&temporary));
}

#[test]
fn a_command_that_a_signal_ends_is_reported_with_its_figures_and_nothing_is_left() {
    for (signal, name) in [(libc::SIGHUP, "SIGHUP"), (libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")] {
        let temporary = empty("ended-by-a-signal");
        let (lab, mut stdout) = run_script("echo $$; exec sleep 1000", &temporary);
        let sleeper = line(&mut stdout);
        send(&lab, signal);
        let output = lab.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal), "{}", said(&output));
        holds(&said(&output), &[&format!("ended by signal {signal} ({name})"), "peak RSS", "page faults"]);
        assert!(!Path::new("/proc").join(sleeper).exists(), "the command has been waited for");
        assert!(left_in(&temporary).is_empty(), "{:?}", left_in(&temporary));
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let temporary = empty("ignored");
    let script = format!("echo $$; {}", says(&["USR1"]));
    let mut nohup = command(&["run", "-a", "system", "--", "sh", "-c", &script]);
    let ignore_the_hang_up = || {
        // SAFETY: an ignored signal runs no code of this process.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure only calls `signal`, which is async-signal-safe.
    unsafe { nohup.pre_exec(ignore_the_hang_up) };
    nohup.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut lab = nohup.spawn().unwrap();
    let mut stdout = BufReader::new(lab.stdout.take().unwrap());
    let shell: i32 = line(&mut stdout).parse().unwrap();
    assert_eq!(line(&mut stdout), "ready");
    send(&lab, libc::SIGHUP);
    // The lab passes signals on in the order of their numbers, so SIGHUP would end the shell before it reports SIGUSR1.
    send(&lab, libc::SIGUSR1);
    assert_eq!(line(&mut stdout), "got USR1");
    // SAFETY: the shell runs until it receives this signal, so the number belongs to it.
    assert_eq!(unsafe { libc::kill(shell, libc::SIGALRM) }, 0);
    assert_eq!(lab.wait().unwrap().code(), Some(7));
}

#[test]
fn the_exit_status_is_the_commands_even_if_the_reader_of_the_summary_has_left() {
    let temporary = empty("no-reader");
    let mut lab = command(&["run", "-a", "system", "--", "sh", "-c", "exit 5"])
        .env("TMPDIR", &temporary)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(lab.stderr.take());
    assert_eq!(lab.wait().unwrap().code(), Some(5));
    assert!(left_in(&temporary).is_empty(), "{:?}", left_in(&temporary));
}

/// A pseudo-terminal: the user's end, and the program's end.
fn terminal() -> (fs::File, OwnedFd) {
    let (mut person, mut program) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: both numbers are locals that can be written; name, settings and size may be null.
    let opened = unsafe { libc::openpty(&mut person, &mut program, null, std::ptr::null(), std::ptr::null()) };
    assert_eq!(opened, 0);
    // SAFETY: openpty just opened this descriptor, and nothing else owns it.
    let person = unsafe { fs::File::from_raw_fd(person) };
    // SAFETY: so is this one.
    (person, unsafe { OwnedFd::from_raw_fd(program) })
}

#[test]
fn a_signal_from_the_terminal_reaches_the_command_once() {
    let (person, program) = terminal();
    let temporary = empty("terminal");
    let script = format!("echo $$; {}", says(&["INT", "QUIT", "USR1"]));
    let mut lab = command(&["run", "-a", "system", "--", "sh", "-c", &script]);
    lab.env("TMPDIR", &temporary)
        .stdin(program.try_clone().unwrap())
        .stdout(program.try_clone().unwrap())
        .stderr(Stdio::null());
    let take_the_terminal = || {
        // SAFETY: takes nothing; a plain system call.
        unsafe { libc::setsid() };
        // SAFETY: standard input is the terminal, and the request takes a number.
        unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
        Ok(())
    };
    // SAFETY: the closure only calls setsid and ioctl, which are async-signal-safe.
    unsafe { lab.pre_exec(take_the_terminal) };
    let mut running = lab.spawn().unwrap();
    drop(lab);
    // The program's end stays open here: once every other is closed, reading what is left on the screen may fail.
    let mut screen = BufReader::new(person.try_clone().unwrap());
    let mut keyboard = person;
    let shell: i32 = line(&mut screen).parse().unwrap();
    assert_eq!(line(&mut screen), "ready");
    for (key, name) in [(b"\x03", "INT"), (b"\x1c", "QUIT"), (b"\x03", "INT")] {
        keyboard.write_all(key).unwrap();
        let shown = line(&mut screen);
        assert!(shown.ends_with(&format!("got {name}")), "{shown:?}");
        // If the lab passed the signal of the terminal on as well, it would do so before this one or with it, and the shell would handle the
        // lower number first.
        send(&running, libc::SIGUSR1);
        assert_eq!(line(&mut screen), "got USR1");
    }
    // SAFETY: the shell runs until it receives this signal, so the number belongs to it.
    assert_eq!(unsafe { libc::kill(shell, libc::SIGALRM) }, 0);
    assert_eq!(line(&mut screen), "got the end");
    assert_eq!(running.wait().unwrap().code(), Some(7));
    drop(program);
    assert!(left_in(&temporary).is_empty(), "{:?}", left_in(&temporary));
}

#[test]
fn a_measurement_that_is_asked_to_stop_keeps_what_it_has_and_leaves_nothing() {
    for (signal, name) in [(libc::SIGTERM, "term"), (libc::SIGHUP, "hup"), (libc::SIGINT, "int")] {
        let temporary = empty("stopped");
        let out = file(&format!("stopped-{name}.jsonl"));
        let pipe = file(&format!("stopped-{name}.pipe"));
        let _ = fs::remove_file(&pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = format!("echo $$ > {pipe}");
        let lab = command(&["compare", "-a", "system", "--rounds", ENDLESS, "-o", &out, "--", "sh", "-c", &script])
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Two runs of the warm-up, then one round, which is over when the next one has begun.
        for _ in 0..4 {
            fs::read_to_string(&pipe).unwrap();
        }
        send(&lab, signal);
        let output = lab.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal), "{}", said(&output));
        holds(&said(&output), &["interrupted: the figures rest on the rounds that were finished", "results: "]);
        assert!(fs::read_to_string(&out).unwrap().contains("\"round\":0"));
        assert!(left_in(&temporary).is_empty(), "{:?}", left_in(&temporary));
    }
}

/// Starts a measurement of a workload, waits until a line of its results begins with `line`, and asks it to stop.
fn stopped_at(line: &str, arguments: &[&str], out: &str) -> Output {
    let _ = fs::remove_file(out);
    let options = ["-a", "system", "--no-report", "--rounds", ENDLESS, "-o", out];
    let mut lab = command(&[&arguments[..1], &options, &arguments[1..]].concat());
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !fs::read_to_string(out).unwrap_or_default().lines().any(|each| each.starts_with(line)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    send(&lab, libc::SIGTERM);
    lab.wait_with_output().unwrap()
}

#[test]
fn a_workload_that_is_asked_to_stop_shows_what_it_has_or_says_that_this_is_nothing() {
    let (out, trace) = (file("stopped-workload.jsonl"), file("stopped-workload.trace"));
    assert!(freestone(&["record", "-o", &trace, "--", "sh", "-c", "true"]).status.success());
    let bench = ["bench", "tiny_hot", "-p", "tiny_hot.ops=1000"];
    for (subject, arguments) in [("tiny_hot", &bench[..]), ("stopped-workload.trace", &["replay", &trace])] {
        let run = format!(r#"{{"run":{{"subject":"{subject}","allocator":"system""#);
        let output = stopped_at(&run, arguments, &out);
        assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{}", said(&output));
        holds(&said(&output), &["interrupted: the figures rest on the rounds that were finished", "results: "]);
        holds(&String::from_utf8_lossy(&output.stdout), &["as a multiple of system's"]);
    }
    // The first round is never complete.
    let endless = ["bench", "random_mixed", "-p", "random_mixed.ops=100000000000"];
    for arguments in [&endless[..], &["compare", "--", "sleep", "1000"]] {
        let output = stopped_at(r#"{"allocators":"#, arguments, &out);
        assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{}", said(&output));
        holds(&said(&output), &["freestone: interrupted before anything was measured"]);
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(!Path::new(&out).exists(), "what measured nothing leaves nothing");
    }
}

/// A file with this content and mode.
fn program(name: &str, content: &[u8], mode: u32) -> String {
    let path = scratch().join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_command_that_is_missing_exits_127_and_one_that_cannot_be_run_126() {
    let cases = [
        ("no-such-command".to_owned(), 127, "'no-such-command' was not found in PATH"),
        ("/no/such/command".to_owned(), 127, "there is no such file"),
        (scratch().to_str().unwrap().to_owned(), 126, "it is a directory"),
        (program("not-executable", b"#!/bin/sh\n", 0o644), 126, "not an executable file"),
        (program("no-interpreter", b"#!/no/such/interpreter\n", 0o755), 126, "the interpreter or the loader"),
        (program("damaged-program", b"\x7fELF and no more", 0o755), 126, "neither a program for this machine"),
        (program("zeros", &[0; 100], 0o755), 126, "neither a program for this machine"),
    ];
    for (command, status, why) in cases {
        for arguments in
            [&["run", "-a", "system"][..], &["compare", "-a", "system", "--no-report", "-o", &file("none.jsonl")]]
        {
            let output = freestone(&[arguments, &["--", &command]].concat());
            assert_eq!(output.status.code(), Some(status), "{arguments:?} {command}: {}", said(&output));
            holds(&said(&output), &[&command, why]);
        }
    }
}

#[test]
fn a_script_without_a_first_line_for_the_kernel_runs_as_in_a_shell() {
    let script = program("plain-script", b"exit 9\n", 0o755);
    assert_eq!(freestone(&["run", "-a", "system", "--", &script]).status.code(), Some(9));
}
