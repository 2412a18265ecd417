//! The programs of the other tests with the level `checks` of the option `harden`: no false alarm, and nothing that works no longer.

mod harness;

use harness::{Program, Way, cpp_compiler, crate_dir, expect_silent, scratch, succeed};
use std::process::Command;

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
    run("memory.c", &["no_background"], &[("FREESTONE_BACKGROUND", "off")]);
    // The part `kept` is about the large-run cache, which a watched heap does not use.
    for part in ["heap_limit", "scattered", "sleepers", "main_thread_leaves"] {
        run("memory.c", &[part], &[]);
    }
}

#[test]
fn explicit_heaps_are_deleted_with_all_they_have() {
    for part in ["abandoned_spans", "freed_before_deletion", "freed_by_all", "limit_and_realloc"] {
        run("heaps.c", &[part], &[]);
    }
}

/// Runs a C++ program, if there is a compiler for it.
fn run_cpp(source: &str, flags: &[&str], arguments: &[&str]) {
    if cpp_compiler().is_none() {
        return;
    }
    let program = Program::with_flags(source, Way::Preload, flags);
    expect_silent(program.command().args(arguments).env("FREESTONE_HARDEN", "checks"), Way::Preload);
}

#[test]
fn what_one_form_of_new_allocates_its_form_of_delete_frees() {
    for part in ["forms", "constructors", "containers", "resources", "threads", "no_memory"] {
        run_cpp("operators.cpp", &[], &[part]);
    }
}

#[test]
fn a_program_with_a_malloc_or_operators_of_its_own_is_not_accused() {
    for own in ["-DOWN_MALLOC", "-DOWN_PLAIN", "-DOWN_ALIGNED"] {
        run_cpp("operators_own.cpp", &[own, "-Wno-sized-deallocation"], &[]);
    }
}

#[test]
fn a_program_that_replaces_some_forms_by_functions_of_c_is_not_accused() {
    for more in ["-fpie", "-no-pie"] {
        run_cpp("operators_partly.cpp", &["-Wno-sized-deallocation", "-Wno-mismatched-new-delete", more], &[]);
    }
}

#[test]
fn a_library_that_prefers_its_own_operators_is_not_accused() {
    let Some(compiler) = cpp_compiler() else { return };
    let plugin = scratch("programs").join("hardened-plugin.so");
    let mut compile = Command::new(compiler);
    compile.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"]).arg(&plugin);
    succeed(compile.arg(crate_dir().join("tests/c/operators_plugin.cpp")));
    run_cpp("operators_load.cpp", &[], &[plugin.to_str().expect("a path in UTF-8")]);
}
