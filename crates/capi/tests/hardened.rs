//! The programs of the other tests with the level `checks` of the option `harden`: no false alarm, and nothing that works no longer.

mod harness;

use harness::{Program, Way, expect_silent};

fn run(source: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    let program = Program::new(source, Way::Preload);
    let mut command = program.command();
    command.args(arguments).env("FREESTONE_HARDEN", "checks").envs(environment.iter().copied());
    expect_silent(&mut command, Way::Preload);
}

#[test]
fn the_malloc_family_does_what_it_did() {
    for part in [
        "sizes",
        "absurd",
        "overflow",
        "alignments",
        "bad_alignments",
        "pages",
        "reallocs",
        "zeroes",
        "kept_errno",
        "usable_sizes",
        "heaps",
    ] {
        run("conformance.c", &[part], &[]);
    }
}

#[test]
fn threads_free_each_others_blocks_and_end() {
    run("threads.c", &["producer_consumer"], &[]);
    run("threads.c", &["generations"], &[]);
}

#[test]
fn a_forked_child_goes_on() {
    for arguments in [&["handlers", "4"][..], &["inner"], &["beside_heaps"], &["beside_purges"], &["generations"]] {
        run("fork.c", arguments, &[]);
    }
    run("life_cycle.c", &["fork_storm"], &[]);
}

#[test]
fn memory_goes_back_after_bursts_and_at_limits() {
    run("memory.c", &["background"], &[("FREESTONE_DECAY_MS", "300")]);
    run("memory.c", &["pressure"], &[("FREESTONE_LIMIT", "32m"), ("FREESTONE_LIMIT_HARD", "64m")]);
    for part in ["heap_limit", "scattered", "sleepers"] {
        run("memory.c", &[part], &[]);
    }
}

#[test]
fn explicit_heaps_are_deleted_with_all_they_have() {
    for part in ["abandoned_spans", "freed_before_deletion", "freed_by_all", "limit_and_realloc"] {
        run("heaps.c", &[part], &[]);
    }
}
