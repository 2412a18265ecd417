//! `freestone top`, as a user and as a script run it.
//!
//! # Safety
//! Functions of the C library get pointers to locals, and descriptors that the test has opened.
#![allow(unsafe_code)]

mod harness;

use harness::{command, file, freestone, holds, program_with, refuses, said, scratch};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Holds 1000 blocks of 1000 bytes and one of 64 MiB, says so, and waits for its input to end; with an argument, until it is killed.
const HOLDER: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(1000);
        if (!block) return 9;
        memset(block, 1, 1000);
    }
    char *large = malloc(64 << 20), byte;
    if (!large) return 9;
    memset(large, 1, 64 << 20);
    for (int i = 0; i < 60; i++) { free(malloc(200000)); usleep(10000); }
    (void)!write(1, "held\n", 5);
    while (argc > 1) pause();
    while (read(0, &byte, 1) > 0) free(malloc(200000));
    free(large);
    return 3;
}
"#;

/// The program above; `None` without a C compiler.
fn holder() -> Option<&'static str> {
    static PROGRAM: OnceLock<Option<String>> = OnceLock::new();
    PROGRAM.get_or_init(|| program_with("holder", HOLDER, &["-O0"])).as_deref()
}

/// The library that the lab uses.
fn library() -> String {
    let output = freestone(&["run", "--json", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Longest wait until the page shows what the holder holds.
const SHOWN_LIMIT: Duration = Duration::from_secs(20);

/// The holder with a page of statistics, holding, and shown so: its page is a tenth of a second old, or older where the machine is busy.
fn start_holder(program: &str, live: &str) -> Child {
    let mut start = Command::new(program);
    start.env("LD_PRELOAD", library()).env("FREESTONE_LIVE", live).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = start.spawn().unwrap();
    let mut said = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"held\n");
    let (began, pid) = (Instant::now(), child.id().to_string());
    let live = || {
        let output = freestone(&["top", "--once", "--json", "--delay", "0.1", &pid]);
        serde_json::from_slice::<Value>(&output.stdout).ok().and_then(|sample| sample["live_bytes"].as_u64())
    };
    while live().is_none_or(|live| live < 64 << 20) && began.elapsed() < SHOWN_LIMIT {}
    child
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// What the holder holds, at least and at most.
fn expect_held(sample: &Value) {
    let live = sample["live_bytes"].as_u64().unwrap();
    let known = (64 << 20) + 1000 * 1008;
    assert!((known..known + (2 << 20)).contains(&live), "{live} are live, {known} are known");
    let class = sample["by_class"].as_array().unwrap().iter().find(|row| row["size"] == 1024).expect("a class");
    assert_eq!(class["live_bytes"], 1_024_000);
    let parts = ["live_bytes", "cached_bytes", "fragmented_bytes", "dirty_bytes", "metadata_bytes"];
    assert_eq!(sample["committed_bytes"].as_u64(), parts.map(|part| sample[part].as_u64()).into_iter().sum());
}

#[test]
fn a_process_that_holds_a_known_amount_is_shown_with_it() {
    let Some(program) = holder() else { return };
    let mut child = start_holder(program, "on");
    let pid = child.id().to_string();
    let output = freestone(&["top", "--once", "--json", "--delay", "0.1", &pid]);
    assert!(output.status.success(), "{}", said(&output));
    let sample = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(sample["pid"], child.id());
    assert!(sample["by_heap"].as_array().unwrap().iter().any(|row| row["thread_id"] == child.id()), "{sample}");
    expect_held(&sample);
    let text = freestone(&["top", "--once", "--delay", "0.1", &pid]);
    holds(&String::from_utf8(text.stdout).unwrap(), &["holder", "live", "65.0 MiB", "1 000", "large"]);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
    refuses(&["top", "--once", &pid], &["there is no process"]);
    if let Some(program) = program_with("static", "int main(void) { return 0; }\n", &["-static"]) {
        refuses(&["top", "--once", "--", &program], &[&program, "linked statically"]);
    }
}

#[test]
fn json_has_a_line_per_sample_and_one_for_the_end_of_a_killed_process() {
    let Some(program) = holder() else { return };
    let live = file("killed-%p.live");
    let mut child = start_holder(program, &live);
    let mut top = command(&["top", "--json", "--delay", "0.1", &child.id().to_string()]);
    let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(top.stdout.take().unwrap()));
    for _ in 0..3 {
        expect_held(&json(&lines.next().unwrap().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let last = json(&lines.map(Result::unwrap).last().unwrap());
    assert_eq!(last["end"], "has ended");
    expect_held(&last);
    assert!(top.wait().unwrap().success());
    fs::remove_file(live.replace("%p", &child.id().to_string())).expect("a killed process leaves its page");
}

#[test]
fn a_page_that_is_cut_off_while_it_is_shown_is_the_end_of_its_process_and_of_no_other() {
    let Some(program) = holder() else { return };
    let live = file("cut-%p.live");
    let mut child = start_holder(program, &live);
    let mut top = command(&["top", "--json", "--delay", "0.1", &child.id().to_string()]);
    let mut top = top.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(top.stdout.take().unwrap()));
    expect_held(&json(&lines.next().unwrap().unwrap()));
    let page = live.replace("%p", &child.id().to_string());
    fs::OpenOptions::new().write(true).truncate(true).open(&page).unwrap();
    // A fault ends it where it writes the page.
    child.wait().unwrap();
    let last = json(&lines.map(Result::unwrap).last().unwrap());
    assert_eq!(last["end"], "has ended");
    expect_held(&last);
    assert_eq!(top.wait().unwrap().code(), Some(0));
    fs::remove_file(page).unwrap();
}

#[test]
fn a_command_is_started_and_its_exit_status_and_output_passed_on() {
    let Some(program) = holder() else { return };
    let mut top = command(&["top", "--json", "--delay", "0.1", "--", program]);
    let mut top = top.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut lines = std::io::BufReader::new(top.stdout.take().unwrap());
    while !line.contains("\"size\":1024") {
        line.clear();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    }
    drop(top.stdin.take());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(json(rest.lines().last().unwrap())["end"], "ended with status 3");
    let output = top.wait_with_output().unwrap();
    assert_eq!((output.status.code(), said(&output).trim()), (Some(3), "held"));
}

/// The lab with the holder under it, which holds until it is ended, and the folder of its temporary files.
fn start_top(arguments: &[&str], program: &str) -> (Child, PathBuf) {
    let temporary = scratch().join(format!("top {}", arguments.join(" ")));
    let _ = fs::remove_dir_all(&temporary);
    fs::create_dir_all(&temporary).unwrap();
    let mut top = command(&[&["top"], arguments, &["--", program, "until killed"]].concat());
    let top = top.env("TMPDIR", &temporary).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (top, temporary)
}

/// The end of the lab. The holder has the pipe of standard error, too: that it has ended is waited for.
fn end_of(top: Child, temporary: &Path) -> Output {
    let output = top.wait_with_output().unwrap();
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0, "something is left in {}", temporary.display());
    output
}

#[test]
fn a_signal_to_the_lab_alone_ends_the_command_and_leaves_nothing() {
    let Some(program) = holder() else { return };
    // The first sample of the one is due in an hour, as is the second of the other.
    let forms = [("--json", libc::SIGTERM), ("--once", libc::SIGINT)];
    let started = forms.map(|(form, signal)| (signal, start_top(&[form, "--delay", "3600"], program)));
    for (signal, (mut top, temporary)) in started {
        let mut said = [0; 5];
        top.stderr.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"held\n");
        // SAFETY: the lab has not been waited for, so the number belongs to it.
        assert_eq!(unsafe { libc::kill(top.id() as i32, signal) }, 0);
        let output = end_of(top, &temporary);
        assert_eq!(output.status.code(), Some(128 + signal));
        holds(&String::from_utf8(output.stdout).unwrap(), &["live"]);
    }
}

#[test]
fn a_reader_that_has_gone_ends_the_command_that_was_started_for_it() {
    let Some(program) = holder() else { return };
    let (mut top, temporary) = start_top(&["--json", "--delay", "0.1"], program);
    drop(top.stdout.take());
    assert_eq!(end_of(top, &temporary).status.code(), Some(0));
}

#[test]
fn what_cannot_be_shown_is_one_sentence_and_a_status() {
    let own = std::process::id().to_string();
    for (arguments, status, part) in [
        (&["top", "--once", &own][..], 2, "freestone top -- COMMAND"),
        (&["top", "--once", "4194305"], 2, "there is no process"),
        (&["top", &own], 2, "--once"),
        (&["top"], 2, "required"),
        (&["top", "--once", "--delay", "0", &own], 2, "0.1"),
        (&["top", "--once", "--", "/no/such/command"], 127, "no such file"),
    ] {
        let output = freestone(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", said(&output));
        holds(&said(&output), &[part]);
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_process_with_the_library_and_without_a_page_is_told_from_one_without_the_library() {
    let mut child = Command::new("cat").env("LD_PRELOAD", library()).stdin(Stdio::piped()).spawn().unwrap();
    // Its name appears when it has been loaded.
    while fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap().trim() != "cat" {
        std::thread::sleep(Duration::from_millis(1));
    }
    let said_of = |child: &Child| said(&freestone(&["top", "--once", &child.id().to_string()]));
    let mut text = said_of(&child);
    while !text.contains("but keeps no statistics") {
        assert!(text.contains("does not run under Freestone"), "{text}");
        text = said_of(&child);
    }
    holds(&text, &["FREESTONE_LIVE=on"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A terminal of so many columns and rows: what the user holds, and what the program gets.
fn terminal(columns: u16, rows: u16) -> (fs::File, OwnedFd) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut user, mut program) = (-1, -1);
    // SAFETY: the results are locals; no name and no modes are asked for.
    let result = unsafe { libc::openpty(&mut user, &mut program, std::ptr::null_mut(), std::ptr::null(), &size) };
    assert_eq!(result, 0);
    // SAFETY: the descriptor was opened just now, and nothing else has it.
    let user = unsafe { fs::File::from_raw_fd(user) };
    // SAFETY: as above.
    (user, unsafe { OwnedFd::from_raw_fd(program) })
}

/// Reads what the program draws until it has drawn all of `parts`.
fn read_until(user: &mut fs::File, drawn: &mut String, parts: &[&str]) {
    let mut bytes = [0; 4096];
    while !parts.iter().all(|part| drawn.contains(part)) {
        let n = user.read(&mut bytes).unwrap_or(0);
        assert!(n > 0, "the program ended after it had drawn {drawn:?}");
        drawn.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
}

#[test]
fn quitting_ends_what_the_command_started_too() {
    let Some(program) = holder() else { return };
    let (mut user, end) = terminal(80, 24);
    let pid_file = file("started-by-the-command");
    let _ = fs::remove_file(&pid_file);
    let script = format!("'{program}' until killed & echo $! > '{pid_file}'; wait; true");
    let mut top = command(&["top", "--delay", "0.1", "--", "sh", "-c", &script]);
    top.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
    let mut top = top.spawn().unwrap();
    read_until(&mut user, &mut String::new(), &["\x1b[?1049h", "committed", "Quit"]);
    let started = fs::read_to_string(&pid_file).unwrap();
    let is_running = || Path::new("/proc").join(started.trim()).join("exe").exists();
    assert!(is_running());
    user.write_all(b"q").unwrap();
    read_until(&mut user, &mut String::new(), &["\x1b[?1049l"]);
    top.wait().unwrap();
    let began = Instant::now();
    while is_running() && began.elapsed() < SHOWN_LIMIT {}
    assert!(!is_running(), "process {started} goes on");
}

#[test]
fn the_view_is_drawn_obeys_keys_and_leaves_the_terminal_as_it_was() {
    let Some(program) = holder() else { return };
    for (columns, quit) in [(80, "q"), (40, "\x03")] {
        let (mut user, end) = terminal(columns, 24);
        let mut top = command(&["top", "--delay", "0.1", "--", program, "until killed"]);
        top.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
        let mut top = top.spawn().unwrap();
        let mut drawn = String::new();
        read_until(&mut user, &mut drawn, &["\x1b[?1049h", "committed", "fragmented", "1024", "Quit"]);
        user.write_all(b"?").unwrap();
        read_until(&mut user, &mut drawn, &["reverse"]);
        user.write_all(quit.as_bytes()).unwrap();
        read_until(&mut user, &mut drawn, &["\x1b[?1049l"]);
        assert_eq!(top.wait().unwrap().code(), Some(0), "{drawn:?}");
    }
}
