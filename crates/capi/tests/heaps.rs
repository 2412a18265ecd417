//! Explicit heaps beside thread heaps: the end of one leaves the blocks of all others alone.

mod harness;

use harness::{Program, WAYS, expect_silent};

fn run(part: &str) {
    for way in WAYS {
        expect_silent(Program::new("heaps.c", way).command().arg(part), way);
    }
}

#[test]
fn deleting_a_heap_leaves_the_live_blocks_of_dead_threads_alone() {
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
