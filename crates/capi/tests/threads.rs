//! Blocks that change threads, and the statistics meanwhile.

mod harness;

use harness::{Program, WAYS, expect_silent};

#[test]
fn remote_frees_cost_at_most_one_atomic_operation_for_sixteen() {
    for way in WAYS {
        expect_silent(Program::new("threads.c", way).command().arg("producer_consumer"), way);
    }
}

#[test]
fn blocks_outlive_generations_of_threads_and_statistics_always_add_up() {
    for way in WAYS {
        expect_silent(Program::new("threads.c", way).command().arg("generations"), way);
    }
}
