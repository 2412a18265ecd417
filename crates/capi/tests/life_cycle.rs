//! Any entry point first, in any place; threads that start and exit; forks; limits.

mod harness;

use harness::{Program, WAYS, Way, emulated, expect_silent, foreign_target, installed, text};

fn run(arguments: &[&str]) {
    for way in WAYS {
        expect_silent(Program::new("life_cycle.c", way).command().args(arguments), way);
    }
}

#[test]
fn any_entry_point_may_be_the_first_call_of_a_process() {
    run(&["first", "main"]);
}

#[test]
fn any_entry_point_may_be_the_first_call_of_a_thread() {
    run(&["first", "thread"]);
}

#[test]
fn any_entry_point_may_be_the_first_call_in_a_destructor_of_the_41st_key() {
    run(&["first", "destructor"]);
}

#[test]
fn any_entry_point_may_be_the_first_call_at_exit() {
    run(&["first", "atexit"]);
}

#[test]
fn any_entry_point_may_be_called_before_main() {
    for way in WAYS {
        let program = Program::new("life_cycle.c", way);
        for entry in 0..14 {
            expect_silent(program.command().arg("constructor").env("FIRST_IN_CONSTRUCTOR", entry.to_string()), way);
        }
    }
}

#[test]
fn several_threads_may_fork_while_others_allocate() {
    if emulated(
        "qemu itself is not safe to fork while its threads work: the same storm hangs with the system's allocator",
    ) {
        return;
    }
    for way in [Way::Preload, Way::Archive] {
        expect_silent(Program::new("life_cycle.c", way).command().arg("fork_storm"), way);
    }
}

#[test]
fn nothing_is_left_of_threads_once_their_blocks_are_freed() {
    let program = Program::new("life_cycle.c", Way::Preload);
    expect_silent(program.command().args(["threads", "5000"]), Way::Preload);
}

#[test]
fn a_limited_address_space_is_enough() {
    if emulated("the limit is the emulator's as well, and too little for it") {
        return;
    }
    let program = Program::new("life_cycle.c", Way::Preload);
    expect_silent(&mut program.command_after("ulimit -v 300000", "ordinary"), Way::Preload);
    expect_silent(&mut program.command_after("ulimit -d 200000", "ordinary"), Way::Preload);
}

#[test]
fn the_mapping_limit_costs_memory_and_nothing_else() {
    expect_silent(Program::new("life_cycle.c", Way::Preload).command().arg("mappings"), Way::Preload);
}

#[test]
fn locked_pages_do_not_spoil_calloc() {
    expect_silent(Program::new("life_cycle.c", Way::Preload).command().arg("locked"), Way::Preload);
}

#[test]
fn it_runs_under_valgrind() {
    if foreign_target().is_some() || !installed("valgrind") {
        return;
    }
    let program = Program::new("life_cycle.c", Way::Archive);
    let mut valgrind = std::process::Command::new("valgrind");
    let output = valgrind.args(["--quiet", "--tool=none"]).arg(program.path()).arg("ordinary").output();
    let output = output.expect("valgrind can be run");
    assert!(output.status.success(), "{}", text(&output));
}
