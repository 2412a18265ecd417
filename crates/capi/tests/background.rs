//! The background thread starts and ends with the program's threads; threads that start and end in every way.

mod harness;

use harness::{Program, WAYS, Way, emulated, expect_silent, is_musl};

fn run(ways: &[Way], part: &str) {
    if emulated("qemu's threads are not the program's") {
        return;
    }
    for &way in ways {
        expect_silent(Program::new("background.c", way).command().arg(part), way);
    }
}

#[test]
fn a_program_whose_threads_are_joined_has_one_thread_again() {
    run(&WAYS, "comes_and_goes");
}

#[test]
fn the_last_thread_may_end_with_a_cancellation_pending() {
    run(&[Way::Preload, Way::Archive], "ends_in_every_way");
}

#[test]
fn threads_end_at_once_while_others_start_and_fork() {
    run(&[Way::Preload, Way::Archive], "storm");
}

#[test]
fn the_process_ends_with_its_last_thread_even_if_the_first_has_left() {
    run(&WAYS, "first_leaves");
}

#[test]
fn the_background_thread_follows_its_option() {
    run(&[Way::Preload], "follows_the_option");
}

#[test]
fn the_background_thread_starts_once_there_may_be_another_thread() {
    run(&[Way::Preload], "tries_again");
}

#[test]
fn the_background_thread_starts_while_another_thread_looks_at_the_loaded_objects() {
    run(&WAYS, "beside_the_loader");
}

#[test]
fn the_background_thread_starts_where_the_c_library_takes_much_of_each_stack() {
    let takes_much = "glibc.rtld.optional_static_tls=1000000";
    let program = Program::new("background.c", Way::Preload);
    expect_silent(program.command().arg("comes_and_goes").env("GLIBC_TUNABLES", takes_much), Way::Preload);
}

#[test]
fn a_timer_of_the_c_library_may_start_the_background_thread() {
    run(&WAYS, "timer");
}

#[test]
fn the_background_thread_is_scheduled_like_the_first_thread_whichever_thread_starts_it() {
    run(&[Way::Preload], "scheduling");
}

#[test]
fn a_child_of_a_raw_system_call_ends_a_background_thread_that_it_does_not_have() {
    if emulated("qemu's threads are not the program's") {
        return;
    }
    let program = Program::new("background.c", Way::Archive);
    expect_silent(program.command().arg("raw_child").env("FREESTONE_BACKGROUND", "on"), Way::Archive);
}

#[test]
fn a_signal_handler_that_allocates_during_the_first_malloc_of_a_process_or_a_thread_returns() {
    if emulated("an emulator does not stop after every instruction") || is_musl() {
        return;
    }
    for part in ["interrupted", "interrupted_thread"] {
        let program = Program::new("background.c", Way::Archive);
        expect_silent(program.command().arg(part).env("FREESTONE_BACKGROUND", "off"), Way::Archive);
    }
}
