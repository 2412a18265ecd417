//! `freestone profile` from a user's point of view: which functions hold the memory of a program, and the files for other tools.

mod harness;

use harness::{file, freestone, holds, installed, refuses, said, scratch, succeeded};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// Whether a figure is an estimate of this many MiB: the large blocks are sampled for certain, the small ones to a tenth.
fn is_about(bytes: i64, mib: i64) -> bool {
    let expected = mib << 20;
    (bytes - expected).abs() <= expected / 4
}

#[test]
fn a_command_shows_what_held_memory_at_the_peak_and_at_the_end() {
    let output = freestone(&["profile", "--json", "--", program()]);
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
fn what_is_no_profile_and_commands_that_leave_none_are_said() {
    let damaged = file("damaged.heap");
    fs::write(&damaged, "heap profile: 1: 2 [ 3: 4 ] @ heap_v2/524288\n1: 2 [ 3").unwrap();
    refuses(&["profile", "show", &damaged], &["damaged.heap", "cut short"]);
    fs::write(&damaged, "heap_v3/1\n").unwrap();
    refuses(&["profile", "show", &damaged], &["another version"]);
    refuses(&["profile", "show", "/no/such/file"], &["/no/such/file", "cannot be read"]);
    refuses(&["profile", "--", "no-such-command"], &["'no-such-command'"]);
    refuses(&["profile", "--", "sh", "-c", "kill -9 $$"], &["left no profile", "SIGKILL"]);
    refuses(&["profile", "-o", "/no/such/folder/x", "--", "python3", "-c", "pass"], &["/no/such/folder/x"]);
    let status = freestone(&["profile", "--", "python3", "-c", "exit(7)"]);
    assert_eq!(status.status.code(), Some(7), "{}", said(&status));
}
