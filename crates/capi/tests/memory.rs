//! How memory is returned: the background thread, limits and their callback, bursts that leave blocks behind.

mod harness;

use harness::{Program, WAYS, Way, emulated, expect_silent};
use std::env;

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
fn the_background_thread_sleeps_while_no_memory_is_dirty() {
    if emulated("the emulator's threads run when ours sleep") {
        return;
    }
    run("dirty_for_good", &[("FREESTONE_DECAY_MS", "4294967295")]);
}

#[test]
fn no_background_thread_starts_where_the_options_exclude_it() {
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
fn caches_are_emptied_and_the_callback_is_called_before_an_allocation_fails() {
    run("pressure", &[("FREESTONE_LIMIT", "32m"), ("FREESTONE_LIMIT_HARD", "64m")]);
}

#[test]
fn memory_that_a_program_has_locked_is_handed_out_again() {
    for level in ["off", "default", "checks", "full"] {
        let mut command = Program::new("locked.c", Way::Preload).command();
        let output = command.env("FREESTONE_HARDEN", level).output().expect("the program can be run");
        assert!(output.status.success(), "{level}: {output:?}");
    }
}

/// Runs a program that ends when it uses more of the library than `order.ld` lays out first for its like. Other processors have code of other lengths, and
/// hardened heaps execute other code.
fn uses_the_first_code_only(source: &str) {
    let is_usual = cfg!(target_arch = "x86_64") && env::var_os("CAPI_TEST_HARDEN").is_none();
    if is_usual && !emulated("code of other lengths") {
        expect_silent(&mut Program::new(source, Way::Preload).command(), Way::Preload);
    }
}

#[test]
fn a_small_program_does_not_read_the_clock_and_uses_the_librarys_first_64_kib_only() {
    uses_the_first_code_only("small_program.c");
}

#[test]
fn what_programs_of_one_thread_execute_lies_together() {
    uses_the_first_code_only("usual_program.c");
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
fn large_blocks_allocated_and_freed_in_turn_are_counted_exactly_and_purged_when_their_thread_sleeps() {
    if env::var("CAPI_TEST_HARDEN").is_ok_and(|level| level == "checks" || level == "full") {
        println!("skipped: watched heaps keep no large runs");
        return;
    }
    run("kept", &[]);
}

#[test]
fn threads_that_sleep_after_a_burst_keep_little_of_it() {
    run("sleepers", &[]);
    run("sleepers_with_a_block", &[]);
    run("sleepers_with_a_block", &[("FREESTONE_HARDEN", "checks")]);
}

#[test]
fn sparse_tables_that_come_and_go_do_not_become_resident() {
    run("sparse", &[]);
}

#[test]
fn tables_of_which_little_is_written_get_few_huge_pages() {
    run("tables", &[]);
}

#[test]
fn a_program_that_purges_keeps_the_os_pages_with_a_live_block_and_no_others() {
    run("purged", &[]);
    run("purged", &[("FREESTONE_HARDEN", "checks")]);
}

#[test]
fn a_block_that_moves_leaves_no_memory_behind_that_does_not_count() {
    run("moved", &[("FREESTONE_PURGE", "free")]);
    run("moved", &[]);
}

#[test]
fn blocks_that_are_resized_once_take_little_more_than_what_is_asked_for() {
    run("resized", &[]);
}

#[test]
fn what_threads_that_end_together_leave_does_not_stay() {
    run("ended", &[]);
}

#[test]
fn many_threads_that_hold_little_each_share_what_is_free() {
    run("few_each", &[]);
}
