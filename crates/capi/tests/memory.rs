//! How memory comes back: the background thread, limits and their callback, bursts that leave blocks behind.

mod harness;

use harness::{Program, WAYS, Way, emulated, expect_silent};

fn run(part: &str, environment: &[(&str, &str)]) {
    for way in WAYS {
        expect_silent(Program::new("memory.c", way).command().arg(part).envs(environment.iter().copied()), way);
    }
}

#[test]
fn memory_goes_back_when_every_thread_sleeps() {
    run("background", &[("FREESTONE_DECAY_MS", "300")]);
}

#[test]
fn the_background_thread_sleeps_where_nothing_gets_old() {
    if emulated("the emulator's threads run when ours sleep") {
        return;
    }
    run("dirty_for_good", &[("FREESTONE_DECAY_MS", "4294967295")]);
}

#[test]
fn no_thread_comes_where_none_is_wanted() {
    run("no_background", &[("FREESTONE_BACKGROUND", "off")]);
    run("no_background", &[("FREESTONE_PROFILE", "realtime")]);
}

#[test]
fn the_background_thread_keeps_no_process_alive() {
    if emulated("with OS pages of 64 KiB qemu never sees the main thread end, whatever the allocator") {
        return;
    }
    run("main_thread_leaves", &[]);
}

#[test]
fn room_is_made_and_the_program_told_before_an_allocation_fails() {
    run("pressure", &[("FREESTONE_LIMIT", "32m"), ("FREESTONE_LIMIT_HARD", "64m")]);
}

#[test]
fn a_heap_has_no_more_than_its_limit() {
    run("heap_limit", &[]);
}

#[test]
fn a_burst_that_leaves_blocks_behind_gives_the_other_pages_back() {
    let program = Program::new("memory.c", Way::Preload);
    expect_silent(program.command().arg("scattered"), Way::Preload);
}

#[test]
fn large_blocks_that_come_and_go_are_counted_exactly_and_go_back_when_their_thread_sleeps() {
    run("kept", &[]);
}

#[test]
fn threads_that_sleep_after_a_burst_keep_little_of_it() {
    run("sleepers", &[]);
}
