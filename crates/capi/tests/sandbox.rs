//! System call filters: what is refused never makes `malloc` fail, and `sandbox=on` makes no call that ends the process.

mod harness;

use harness::{Program, Way, emulated, text};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// What a program says that could not install a filter.
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
fn no_call_that_is_refused_from_the_start_makes_malloc_fail() {
    run("each_refused", &[], succeeds);
}

#[test]
fn a_process_that_may_only_map_allocates_and_frees_as_ever() {
    run("all_refused", &[], succeeds);
}

#[test]
fn in_a_sandbox_nothing_but_memory_and_locks_is_asked_of_the_kernel_after_the_first_allocation() {
    run("killed", &[("FREESTONE_SANDBOX", "on")], succeeds);
    run("killed", &[("FREESTONE_SANDBOX", "on"), ("FREESTONE_THP", "on")], succeeds);
    run("killed", &[("FREESTONE_SANDBOX", "on"), ("FREESTONE_BACKGROUND", "on")], succeeds);
}

/// The same work does come to other calls without the option: the test above is one.
#[test]
fn outside_of_a_sandbox_other_calls_come_later() {
    run("killed", &[], |way, output| {
        assert_eq!(output.status.signal(), Some(SIGSYS), "{way:?}: {}", output.status);
    });
}
