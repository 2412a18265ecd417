//! `freestone profile` from a user's point of view: which functions hold the memory of a program, and the files for other tools.

mod harness;

use harness::{command, file, freestone, holds, installed, refuses, said, scratch, succeeded};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The program of `c/holders.cpp`.
fn program() -> &'static str {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/holders.cpp");
        let program = scratch().join("holders");
        let status = Command::new("g++").args(["-O1", "-g", "-o"]).arg(&program).arg(source).status().unwrap();
        assert!(status.success());
        program
    });
    built.to_str().unwrap()
}

/// Bytes that are live in the stacks that have a function.
fn live_in(profile: &Value, function: &str) -> i64 {
    let has = |site: &&Value| {
        let frames = site["stack"].as_array().unwrap();
        frames.iter().any(|frame| frame["function"].as_str().unwrap().starts_with(function))
    };
    let sites = profile["profile"]["sites"].as_array().unwrap();
    sites.iter().filter(has).map(|site| site["live"]["bytes"].as_i64().unwrap()).sum()
}

/// Whether a figure is an estimate of this many MiB: the large blocks are sampled for certain.
fn is_about(bytes: i64, mib: i64) -> bool {
    let expected = mib << 20;
    (bytes - expected).abs() <= expected / 4
}

#[test]
fn a_command_shows_what_held_memory_at_the_peak_and_at_the_end() {
    // 640 samples of the small blocks: a quarter is six times the standard deviation.
    let output = freestone(&["profile", "--json", "--interval", "32768", program()]);
    succeeded(&output);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["main"]["title"], &shown["other"]["title"]), (&"At the peak".into(), &"At the end".into()));
    let [peak, end] = [&shown["main"], &shown["other"]];
    assert!(is_about(live_in(peak, "burst"), 64) && live_in(end, "burst") == 0, "{shown}");
    assert!(live_in(peak, "keep") == 0 && is_about(live_in(end, "keep"), 8), "{shown}");
    // 20000 strings of 1001 bytes, in blocks of 1024, and as many nodes.
    assert!(is_about(live_in(peak, "cache::Cache::fill"), 21), "{shown}");
}

#[test]
fn the_files_open_elsewhere_and_dumps_are_shown_again_and_compared() {
    let (name, dumps) = (file("holders-profile"), file("holders-dumps"));
    let _ = fs::remove_dir_all(&dumps);
    let output = freestone(&["profile", "-o", &name, "--dumps", &dumps, "--", program()]);
    let said = succeeded(&output);
    holds(&String::from_utf8_lossy(&output.stdout), &["At the peak", "burst", "holders.cpp:", "At the end", "keep"]);
    holds(&said, &[".pb.gz", ".folded", ".svg", ".html"]);
    let read =
        |extension: &str| String::from_utf8_lossy(&fs::read(format!("{name}.{extension}")).unwrap()).into_owned();
    holds(&read("folded"), &["main;burst(unsigned long) 67"]);
    holds(&read("svg"), &["burst", "prefers-color-scheme"]);
    holds(&read("html"), &["<svg", "At the peak", "At the end", "burst"]);
    if installed("go") {
        let pprof = Command::new("go").args(["tool", "pprof", "-top"]).arg(format!("{name}.pb.gz")).output().unwrap();
        holds(&String::from_utf8_lossy(&pprof.stdout), &["inuse_space", "burst", "64MB"]);
    }
    let of = |which: &str| {
        let mut names = fs::read_dir(&dumps).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.to_str().unwrap().contains(which)).unwrap().to_str().unwrap().to_owned()
    };
    let (peak, live) = (of(".peak."), of(".live."));
    holds(&String::from_utf8_lossy(&freestone(&["profile", "show", &live, &peak]).stdout), &["Now", "burst"]);
    let changed = freestone(&["profile", "diff", "--json", &peak, &live]);
    let changed: Value = serde_json::from_slice(&changed.stdout).unwrap();
    assert!(
        is_about(-live_in(&changed["main"], "burst"), 64) && is_about(live_in(&changed["main"], "keep"), 8),
        "{changed}"
    );
}

#[test]
fn dumps_of_an_earlier_run_are_kept_and_not_shown() {
    let dumps = file("earlier-dumps");
    let _ = fs::remove_dir_all(&dumps);
    succeeded(&freestone(&["profile", "--dumps", &dumps, "--", program()]));
    let kept = || fs::read_dir(&dumps).unwrap().count();
    let before = kept();
    refuses(&["profile", "--dumps", &dumps, "--", "sh", "-c", "kill -9 $$"], &["left no profile", "SIGKILL"]);
    assert!(before >= 2 && kept() == before);
    let output = freestone(&["profile", "--dumps", &dumps, "--", "sort", "/dev/null"]);
    let said = succeeded(&output);
    assert!(!said.contains("processes left profiles"), "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("burst") && kept() > before);
}

#[test]
fn lost_samples_are_said_in_a_warning_and_in_json() {
    let dump = file("lossy.heap");
    let text =
        "heap profile: 1: 2 [ 3: 4 ] @ heap_v2/1\n1: 2 [ 3: 4 ] @ 0x1\n# 31 samples were lost\n\nMAPPED_LIBRARIES:\n";
    fs::write(&dump, text).unwrap();
    holds(&succeeded(&freestone(&["profile", "show", &dump])), &["warning: samples lost: 31."]);
    let shown: Value = serde_json::from_slice(&freestone(&["profile", "show", "--json", &dump]).stdout).unwrap();
    assert_eq!(shown["main"]["profile"]["lost"], 31, "{shown}");
}

#[test]
fn what_is_no_profile_and_commands_that_leave_none_are_said() {
    let damaged = file("damaged.heap");
    fs::write(&damaged, "heap profile: 1: 2 [ 3: 4 ] @ heap_v2/524288\n1: 2 [ 3").unwrap();
    refuses(&["profile", "show", &damaged], &["damaged.heap", "cut short"]);
    fs::write(&damaged, "heap_v3/1\n").unwrap();
    refuses(&["profile", "show", &damaged], &["another version"]);
    refuses(&["profile", "show", "/no/such/file"], &["/no/such/file", "cannot be read"]);
    refuses(&["profile", "--", "no-such-command"], &["'no-such-command'"]);
    refuses(&["profile", "4711", "--seconds", "5"], &["options come before", "freestone profile OPTIONS 4711"]);
    refuses(&["profile", "--", "sh", "-c", "kill -9 $$"], &["left no profile", "SIGKILL"]);
    refuses(&["profile", "--interval", "xyz", "--", "true"], &["--interval", "not a number", "takes 1 to "]);
    refuses(&["profile", "-o", "/no/such/folder/x", "--", "python3", "-c", "pass"], &["/no/such/folder/x"]);
    let status = freestone(&["profile", "--", "python3", "-c", "exit(7)"]);
    assert_eq!(status.status.code(), Some(7), "{}", said(&status));
}

#[test]
fn functions_of_a_file_without_symbols_are_offsets_which_is_said() {
    let stripped = file("holders-stripped");
    succeeded(&Command::new("strip").args(["-o", &stripped, program()]).output().unwrap());
    let output = freestone(&["profile", "--json", "--interval", "32768", &stripped]);
    holds(
        &succeeded(&output),
        &["no symbols in ", "holders-stripped", "shown as offsets", "install their debugging symbols"],
    );
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    // What the functions hold is as with their names.
    assert!(is_about(live_in(&shown["main"], "holders-stripped"), 64 + 21), "{shown}");
    assert!(is_about(live_in(&shown["other"], "holders-stripped"), 8 + 21), "{shown}");
    let again = freestone(&["profile", "--interval", "32768", program()]);
    assert!(!succeeded(&again).contains("holders: functions"), "{}", said(&again));
}

/// Says its number, then allocates 64 MiB for each line of input, and says so.
const WAITER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void *held_later(void) { return malloc(1 << 20); }
int main(void) {
    char byte;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (read(0, &byte, 1) == 1) {
        for (int n = 0; n < 64; n++) if (!held_later()) return 9;
        puts("held");
        fflush(stdout);
    }
    return 0;
}
"#;

/// The program above under Freestone, with the option `heap_profile`; its number, and what it says.
fn waiter(option: &str) -> (Child, u32, impl BufRead) {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let (source, program) = (file("waiter.c"), file("waiter"));
        fs::write(&source, WAITER).unwrap();
        let mut compile = Command::new("cc");
        assert!(compile.args(["-O1", "-g", "-fno-builtin", "-o", &program, &source]).status().unwrap().success());
        program
    });
    let mut run = command(&["run", program]);
    run.env("FREESTONE_HEAP_PROFILE", option)
        .env("FREESTONE_HEAP_PROFILE_FILE", "/dev/null")
        .env("XDG_RUNTIME_DIR", scratch());
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap(), said)
}

/// Lets the program of [`waiter`] allocate 64 MiB.
fn hold(child: &mut Child, said: &mut impl BufRead) {
    child.stdin.as_mut().unwrap().write_all(b"+").unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
}

#[test]
fn a_process_that_is_ready_is_sampled_when_its_number_is_given_and_a_second_command_shows_what_it_has() {
    let (mut child, pid, mut said) = waiter("ready");
    hold(&mut child, &mut said);
    // The page is made a tenth of a second after the start.
    let pid = pid.to_string();
    let mut tries = 0..600;
    let mut profile = loop {
        let mut profile = command(&["profile", "--json", "--seconds", "3600", &pid]);
        let mut profile = profile.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(profile.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.contains("samples its allocations") {
            break profile;
        }
        assert!(line.contains("takes no requests") && tries.next().is_some(), "{line}");
        profile.wait().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    hold(&mut child, &mut said);
    // It is on: a second command does not wait.
    let output = freestone(&["profile", "--json", "--seconds", "3600", &pid]);
    let second: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(is_about(live_in(&second["main"], "held_later"), 64), "{second}");
    let interrupt = Command::new("kill").args(["-INT", &profile.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let first: Value = serde_json::from_reader(profile.stdout.take().unwrap()).unwrap();
    assert_eq!(profile.wait().unwrap().code(), Some(130), "as every command that was interrupted");
    assert_eq!((&first["main"]["title"], &first["other"]["title"]), (&"Now".into(), &"At the peak".into()));
    assert!(is_about(live_in(&first["main"], "held_later"), 64), "{first}");
    drop(child.stdin.take());
    child.wait().unwrap();
    refuses(&["profile", &pid], &["there is no process"]);
    let left = fs::read_dir(scratch()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.starts_with(&format!("freestone-{pid}."))).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_process_stops_sampling_whenever_the_command_is_interrupted() {
    let (mut child, pid, _said) = waiter("ready");
    let pid = pid.to_string();
    for delay in (0..200).step_by(10) {
        let mut profile = command(&["profile", "--seconds", "3600", &pid]);
        let mut profile = profile.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        Command::new("kill").args(["-INT", &profile.id().to_string()]).status().unwrap();
        profile.wait().unwrap();
    }
    // A process that samples would be shown at once.
    let output = freestone(&["profile", "--seconds", "0", &pid]);
    holds(&succeeded(&output), &["samples its allocations for 0 s"]);
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn processes_that_take_no_requests_are_said_and_nothing_is_done_to_them() {
    refuses(
        &["profile", &std::process::id().to_string()],
        &["does not run under Freestone", "FREESTONE_HEAP_PROFILE=ready"],
    );
    refuses(&["profile", "4194305"], &["there is no process 4194305"]);
    refuses(&["profile", "--seconds=-1", "1"], &["--seconds"]);
    let (mut child, pid, mut said) = waiter("off");
    let pid = pid.to_string();
    refuses(&["profile", &pid], &["runs under Freestone, but takes no requests"]);
    // As another user, if this one may become one.
    let mut other = command(&["profile", &pid]);
    if let Ok(output) = other.uid(65_534).gid(65_534).output()
        && !output.stderr.is_empty()
    {
        holds(&String::from_utf8_lossy(&output.stderr), &["belongs to another user"]);
        assert!(!output.status.success());
    }
    hold(&mut child, &mut said);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
