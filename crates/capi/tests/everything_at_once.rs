//! Every function of the C interface beside every other, with threads that come and go and forks, under what a process can be started with.

mod harness;

use harness::{Program, WAYS, Way, scratch, text};

/// Runs the program with these options. It may say that there is no room for more guarded blocks or samples, and nothing else.
fn run(way: Way, calls: u32, options: &[(&str, &str)]) {
    let mut command = Program::new("everything_at_once.c", way).command();
    command.arg(calls.to_string()).arg("1").env("FREESTONE_HEAP_PROFILE_FILE", "/dev/null");
    let output = command.envs(options.iter().copied()).output().expect("the program can be started");
    assert!(output.status.success(), "{way:?}, {options:?}: {}\n{}", output.status, text(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    let is_expected =
        |line: &str| line.contains(": guard_sample: all ") || line.contains(": the heap profile is full: ");
    assert!(said.lines().all(is_expected), "{way:?}, {options:?}: {said}");
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
