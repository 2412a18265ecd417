//! Blocks that change threads, and what the statistics say meanwhile.

mod harness;

use harness::{Program, WAYS, expect_silent};

#[test]
fn remote_frees_cost_an_atomic_operation_for_sixteen_at_most() {
    for way in WAYS {
        expect_silent(Program::new("threads.c", way).command().arg("producer_consumer"), way);
    }
}

#[test]
fn generations_of_threads_inherit_blocks_and_statistics_always_add_up() {
    for way in WAYS {
        expect_silent(Program::new("threads.c", way).command().arg("generations"), way);
    }
}
