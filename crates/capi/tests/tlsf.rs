//! The TLSF heap's C interface, and the audio engine that shows its use.

mod harness;

use harness::{Way, c_compiler, crate_dir, library_dir, run_everywhere, scratch, succeed, target_command};
use std::process::Command;

#[test]
fn random_blocks_keep_contents_and_alignment_and_merge_into_one() {
    run_everywhere("tlsf.c", "random");
}

#[test]
fn a_walk_visits_every_block_and_ends_when_its_callback_says_so() {
    run_everywhere("tlsf.c", "walk");
}

#[test]
fn regions_are_added_grown_and_removed_and_bad_ones_are_refused() {
    run_everywhere("tlsf.c", "regions");
}

#[test]
fn no_region_overlaps_the_heaps_control_structure() {
    run_everywhere("tlsf.c", "own_memory");
}

#[test]
fn every_bad_input_is_refused_with_code_and_block_and_changes_nothing() {
    run_everywhere("tlsf.c", "refusals");
}

#[test]
fn every_code_has_a_message_that_names_its_numbers() {
    run_everywhere("tlsf.c", "sentences");
}

#[test]
fn the_audio_engine_plays_from_its_fixed_memory() {
    let program = scratch("examples").join("audio_engine");
    let mut compile = Command::new(c_compiler());
    compile.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(crate_dir().join("include"));
    compile.arg(crate_dir().join("examples/audio_engine.c")).arg(library_dir().join("libfreestone.a"));
    succeed(compile.args(["-lm", "-pthread", "-ldl", "-o"]).arg(&program));
    let said = succeed(&mut target_command(&program));
    assert!(said.contains("240 notes played") && said.contains("0 blocks left"), "{said} ({:?})", Way::Archive);
}
