//! The level `full`: an access to memory that cannot be accessed is reported, and a correct program notices nothing.

mod harness;

use harness::{Program, Way, foreign_target, text};
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;

fn run(argument: &str, level: &str, policy: &str) -> Output {
    let mut command = Program::new("closed.c", Way::Preload).command();
    command.arg(argument).envs([("FREESTONE_HARDEN", level), ("FREESTONE_MISUSE", policy)]);
    command.output().expect("the program can be run")
}

/// Each access, and what is said of it: the crime, and what is known of the block.
const ACCESSES: [(&str, &str, &str); 6] = [
    ("empty_read", "read behind the end of a block: 0x", "(0 bytes requested, 0-byte block), at offset 0 "),
    ("empty_write", "write behind the end of a block: 0x", "(0 bytes requested, 0-byte block), at offset 1 "),
    ("large_read", "read of a freed block: 0x", "(200000 bytes requested, 262144-byte block), at offset 100000 "),
    ("large_write", "write to a freed block: 0x", "(200000 bytes requested, 262144-byte block), at offset 0 "),
    (
        "large_overflow",
        "write behind the end of a block: 0x",
        "(200000 bytes requested, 262144-byte block), at offset 262144 ",
    ),
    ("span_overflow", "write behind the end of a block: 0x", "-byte block), at offset "),
];

#[test]
fn an_access_to_closed_memory_is_reported_with_the_crime_the_block_and_its_sizes() {
    if foreign_target().is_some() {
        println!("skipped: not every processor tells reads from writes");
        return;
    }
    for (argument, crime, block) in ACCESSES {
        for (policy, signal, says) in [("abort", SIGABRT, true), ("report", SIGSEGV, true), ("ignore", SIGSEGV, false)]
        {
            let output = run(argument, "full", policy);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(signal), "{argument} {policy}: {}", text(&output));
            let (first, rest) = said.split_once('\n').unwrap_or_default();
            let is_named = first.starts_with(&format!("freestone: {crime}")) && first.contains(block);
            assert_eq!(is_named && rest.starts_with("  in process "), says, "{argument} {policy}: {said}");
            assert_eq!(said.matches("freestone: ").count(), usize::from(says), "{argument} {policy}: {said}");
        }
    }
}

#[test]
fn a_second_free_of_a_block_of_no_bytes_is_reported() {
    let output = run("empty_twice", "full", "abort");
    assert!(text(&output).starts_with("freestone: double free of 0x"), "{}", text(&output));
}

#[test]
fn a_fault_elsewhere_is_the_programs() {
    let output = run("elsewhere", "full", "abort");
    assert_eq!(output.status.signal(), Some(SIGSEGV), "{}", text(&output));
    assert!(output.stderr.is_empty(), "{}", text(&output));
}

#[test]
fn correct_use_of_blocks_of_no_bytes_is_not_reported() {
    for level in ["default", "checks", "full"] {
        let output = run("behave", level, "abort");
        assert!(output.status.success() && output.stderr.is_empty(), "{level}: {}", text(&output));
    }
}

#[test]
fn a_refused_realloc_of_a_damaged_block_is_reported_once() {
    for level in ["checks", "full"] {
        let output = run("damaged_realloc", level, "report");
        assert!(output.status.success(), "{level}: {}", text(&output));
        assert_eq!(String::from_utf8_lossy(&output.stderr).matches("freestone: ").count(), 1, "{}", text(&output));
    }
}
