//! System call filters: a refused call never makes `malloc` fail, and under `sandbox=on` no call ends the process.

mod harness;

use harness::{Program, Way, emulated, text};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// The exit status of a program that could not install a filter.
const NO_FILTERS: i32 = 77;

/// On x86-64 and AArch64.
const SIGSYS: i32 = 31;

fn run(part: &str, options: &[(&str, &str)], check: impl Fn(Way, &Output)) {
    if emulated("a filter sees the emulator's system calls") {
        return;
    }
    for way in [Way::Preload, Way::Archive] {
        let mut command: Command = Program::new("sandbox.c", way).command();
        let output = command.arg(part).envs(options.iter().copied()).output().expect("the program can be run");
        if output.status.code() == Some(NO_FILTERS) {
            println!("skipped: no filters can be installed here");
            return;
        }
        check(way, &output);
    }
}

fn succeeds(way: Way, output: &Output) {
    assert!(output.status.success() && output.stderr.is_empty(), "{way:?}: {}\n{}", output.status, text(output));
}

#[test]
fn malloc_succeeds_whichever_call_is_refused_from_the_start() {
    run("each_refused", &[], succeeds);
}

#[test]
fn a_process_that_may_only_map_allocates_and_frees_as_usual() {
    run("all_refused", &[], succeeds);
}

#[test]
fn where_nothing_is_mapped_each_malloc_fails_with_few_system_calls() {
    run("nothing_maps", &[], succeeds);
    run("nothing_may_be_mapped", &[], succeeds);
}

#[test]
fn malloc_succeeds_again_once_a_limit_of_address_space_is_raised() {
    run("maps_again", &[], succeeds);
}

/// Many ranges go back with one call, until a filter refuses it; then one by one.
#[test]
fn memory_goes_back_also_when_the_call_for_many_ranges_is_refused_from_some_time_on() {
    run("refused_later", &[], succeeds);
}

#[test]
fn in_a_sandbox_only_memory_and_futex_calls_follow_the_first_allocation() {
    run("killed", &[("FREESTONE_SANDBOX", "on")], succeeds);
    run("killed", &[("FREESTONE_SANDBOX", "on"), ("FREESTONE_THP", "on")], succeeds);
    run("killed", &[("FREESTONE_SANDBOX", "on"), ("FREESTONE_BACKGROUND", "on")], succeeds);
    run("killed", &[("FREESTONE_SANDBOX", "on"), ("FREESTONE_HARDEN", "checks")], succeeds);
    run("killed", &[("FREESTONE_SANDBOX", "on"), ("FREESTONE_HARDEN", "full")], succeeds);
}

/// The same work makes other calls without the option, so the test above can fail.
#[test]
fn outside_of_a_sandbox_other_calls_follow() {
    run("killed", &[], |way, output| {
        assert_eq!(output.status.signal(), Some(SIGSYS), "{way:?}: {}", output.status);
    });
}
