//! Every function of the C interface beside every other, with threads that come and go and forks, under what a process can be started with.

mod harness;

use harness::{Program, WAYS, Way, emulated, scratch, text};
use std::process::Command;

/// Runs the program with these options.
fn run(way: Way, calls: u32, options: &[(&str, &str)]) {
    let mut command = Program::new("everything_at_once.c", way).command();
    expect_success(command.arg(calls.to_string()).arg("1"), options);
}

/// Runs it. It may say that there is no room for more guarded blocks or samples, and nothing else.
fn expect_success(command: &mut Command, options: &[(&str, &str)]) {
    command.env("FREESTONE_HEAP_PROFILE_FILE", "/dev/null").envs(options.iter().copied());
    let output = command.output().expect("the program can be started");
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    let is_expected =
        |line: &str| [": guard_sample: all ", ": the heap profile is full: "].iter().any(|text| line.contains(text));
    assert!(said.lines().all(is_expected), "{command:?}: {said}");
}

#[test]
fn every_call_may_be_made_beside_every_other_however_the_library_is_linked() {
    WAYS.into_iter().for_each(|way| run(way, 5000, &[]));
}

#[test]
fn so_it_is_at_every_level_of_hardening_and_with_each_option_that_makes_calls_take_other_ways() {
    let folder = scratch(&format!("everything-{}", std::process::id()));
    let trace = folder.join("trace");
    for level in ["off", "default", "checks", "full"] {
        for option in [
            ("FREESTONE_GUARD_SAMPLE", "20"),
            ("FREESTONE_HEAP_PROFILE", "on"),
            ("FREESTONE_RECORD", trace.to_str().expect("a path in characters")),
            ("FREESTONE_REPORT_MS", "5"),
            ("FREESTONE_SANDBOX", "on"),
            ("FREESTONE_PROFILE", "lean"),
            ("FREESTONE_PROFILE", "realtime"),
        ] {
            run(Way::Preload, 2000, &[("FREESTONE_HARDEN", level), option, ("FREESTONE_REPORT", "/dev/null")]);
        }
    }
    // The children of forks have traces of their own there.
    std::fs::remove_dir_all(folder).expect("what was recorded");
}

#[test]
fn where_memory_is_short_calls_fail_or_do_what_they_should_and_blocks_stay_as_they_are() {
    if emulated("the limits would be the emulator's") {
        return;
    }
    let program = Program::new("everything_at_once.c", Way::Preload);
    for level in ["off", "default", "checks", "full"] {
        for (limit, option) in [
            ("ulimit -v 100000", ("FREESTONE_BACKGROUND", "on")),
            ("ulimit -v 100000", ("FREESTONE_GUARD_SAMPLE", "20")),
            ("ulimit -d 60000", ("FREESTONE_HEAP_PROFILE", "on")),
            ("true", ("FREESTONE_LIMIT_HARD", "8m")),
        ] {
            let options = [("FREESTONE_HARDEN", level), ("MEMORY_IS_SHORT", "1"), option];
            expect_success(&mut program.command_after(limit, "3000 1"), &options);
        }
    }
}
