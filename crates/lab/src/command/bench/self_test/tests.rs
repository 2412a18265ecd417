use super::*;
use crate::process::command_record::CommandRecord;
use crate::results::outcome::{Outcome, Run};

/// Eight rounds of a command under an allocator and under itself, the second `factor` times as slow.
fn rounds(factor: u64) -> Summary {
    let mut runs = Vec::new();
    for round in 0..8 {
        for (allocator, factor) in [("system", 1), ("system again", factor)] {
            let wall_ns = factor * (1_000_000 + round as u64 * 1000);
            let record = CommandRecord::example(wall_ns, 1 << 20);
            let outcome = Outcome::Command(record);
            runs.push(Run { subject: "x".into(), allocator: allocator.into(), round, outcome });
        }
    }
    Summary::of(&runs, "system")
}

#[test]
fn equal_rounds_pass_and_a_claimed_difference_fails() {
    assert_eq!(judge(&rounds(1)), 0);
    assert_eq!(judge(&rounds(2)), 1);
}

#[test]
fn nothing_compared_is_no_pass() {
    assert_eq!(judge(&Summary::of(&[], "system")), 1);
}
