//! Threads that are idle while others free their blocks: the memory of these goes back, and nothing else.

mod harness;

use harness::{Program, WAYS, Way, emulated, expect_silent};

fn run(ways: &[Way], part: &str, options: &[(&str, &str)]) {
    if emulated("qemu's threads are not the program's") {
        return;
    }
    for &way in ways {
        expect_silent(Program::new("idle.c", way).command().arg(part).envs(options.iter().copied()), way);
    }
}

#[test]
fn the_memory_of_blocks_that_wait_for_an_idle_thread_goes_back_in_the_background() {
    run(&WAYS, "background", &[("FREESTONE_DECAY_MS", "100"), ("FREESTONE_HARDEN", "default")]);
}

#[test]
fn another_thread_that_purges_gives_back_what_waits_for_an_idle_thread() {
    run(&WAYS, "purge", &[("FREESTONE_BACKGROUND", "off"), ("FREESTONE_HARDEN", "default")]);
}

#[test]
fn the_memory_of_an_explicit_heap_that_is_not_used_any_more_goes_back() {
    run(&WAYS, "heap_background", &[("FREESTONE_DECAY_MS", "100"), ("FREESTONE_BACKGROUND", "on")]);
    run(&[Way::Preload], "heap_purge", &[("FREESTONE_BACKGROUND", "off")]);
    // With `harden=checks` the blocks wait in the quarantine.
    run(&[Way::Preload], "heap_free", &[("FREESTONE_BACKGROUND", "off"), ("FREESTONE_HARDEN", "default")]);
}

#[test]
fn allocations_that_fail_one_after_another_do_not_each_look_through_what_waits_for_idle_threads() {
    run(&[Way::Preload], "fails", &[("FREESTONE_BACKGROUND", "off"), ("FREESTONE_HARDEN", "default")]);
}

#[test]
fn blocks_stay_as_they_are_while_threads_idle_end_purge_and_fork() {
    for level in ["off", "default"] {
        run(&[Way::Preload], "storm", &[("FREESTONE_DECAY_MS", "1"), ("FREESTONE_HARDEN", level)]);
    }
}
