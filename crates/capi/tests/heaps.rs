//! Explicit heaps beside thread heaps: the end of one does not change the blocks of others.

mod harness;

use harness::{Program, WAYS, expect_silent, text};

fn run(part: &str) {
    for way in WAYS {
        expect_silent(Program::new("heaps.c", way).command().arg(part), way);
    }
}

#[test]
fn deleting_a_heap_changes_no_live_block_of_a_thread_that_exited() {
    run("abandoned_spans");
}

#[test]
fn a_block_freed_before_its_heap_was_deleted_is_not_handed_out_by_the_next_one() {
    run("freed_before_deletion");
}

#[test]
fn a_heap_may_be_deleted_when_all_threads_have_freed_blocks_of_it() {
    run("freed_by_all");
}

#[test]
fn a_heaps_limit_holds_when_its_blocks_grow() {
    run("limit_and_realloc");
}

#[test]
fn a_heap_uses_all_that_its_limit_allows_however_long_spans_are() {
    for way in WAYS {
        let program = Program::new("heaps.c", way);
        expect_silent(program.command().arg("limit_and_long_spans").env("FREESTONE_SPAN_SIZE", "256k"), way);
    }
}

#[test]
fn a_heap_at_its_limit_asks_the_program_for_room_and_takes_nothing_from_the_rest_of_the_process() {
    run("limit_beside_others");
}

#[test]
fn a_heap_has_its_own_level_of_hardening() {
    run("hardened");
    for way in WAYS {
        let output = Program::new("heaps.c", way).command().arg("overflow").output().expect("the program can be run");
        let said = text(&output);
        assert!(!output.status.success() && said.contains("write behind the end of a block"), "{way:?}: {said}");
    }
}

#[test]
fn a_refused_call_of_a_heap_says_why_by_code_and_details() {
    run("refusals");
}

#[test]
fn the_owner_of_a_block_is_known_and_no_other_heap_frees_it() {
    run("owners");
}

#[test]
fn the_time_to_free_a_block_of_a_heap_does_not_depend_on_how_many_heaps_there_are() {
    run("many_heaps");
}
