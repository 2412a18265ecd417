//! The C++ interface, `freestone.hpp`, with each C++ compiler that is installed, with exceptions and run-time types and without.

mod harness;

use harness::{crate_dir, foreign_target, installed, library_dir, scratch, succeed, text};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};

/// What a program may be compiled with.
const MODES: [&[&str]; 3] = [&["-std=c++17"], &["-std=c++20"], &["-std=c++17", "-fno-exceptions", "-fno-rtti"]];

/// A program in C++, compiled without a warning and linked with the library.
fn compiled(compiler: &str, source: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let program = scratch("programs").join(name);
    let mut compile = Command::new(compiler);
    compile.args(["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]).args(arguments).arg("-I");
    compile.arg(crate_dir().join("include")).arg(crate_dir().join("tests/c").join(source));
    compile.arg("-L").arg(library_dir()).args(["-lfreestone", "-o"]).arg(&program);
    succeed(&mut compile);
    program
}

/// `interface.cpp`, compiled by each compiler in each mode.
fn programs(name: &str) -> Vec<(PathBuf, &'static [&'static str])> {
    let mut programs = Vec::new();
    if foreign_target().is_some() {
        return programs;
    }
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| installed(compiler)) {
        for mode in MODES {
            let program = format!("interface-{name}-{compiler}{}", mode.concat());
            programs.push((compiled(compiler, "interface.cpp", &program, mode), mode));
        }
    }
    programs
}

fn run(program: &PathBuf, part: &str) -> Output {
    let mut command = Command::new(program);
    command.arg(part).env("LD_LIBRARY_PATH", library_dir()).output().expect("the program can be run")
}

#[test]
fn handles_resources_and_allocators_work_with_every_compiler_and_without_exceptions() {
    for (program, mode) in programs("works") {
        for part in ["handles", "resources", "allocators"] {
            let output = run(&program, part);
            assert!(output.status.success(), "{mode:?} {part}: {}", text(&output));
        }
    }
}

#[test]
fn without_memory_a_resource_throws_or_ends_the_process_where_nothing_can_be_thrown() {
    for (program, mode) in programs("fails") {
        let output = run(&program, "no_memory");
        if mode.contains(&"-fno-exceptions") {
            assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{}", text(&output));
        } else {
            assert!(output.status.success(), "{mode:?}: {}", text(&output));
        }
    }
}

/// `interface_own.cpp`, compiled by `g++` with further arguments, and run.
fn run_own(name: &str, further: &[&str]) -> Option<Output> {
    if foreign_target().is_some() || !installed("g++") {
        return None;
    }
    let arguments = [&["-std=c++17"], further].concat();
    Some(run(&compiled("g++", "interface_own.cpp", &format!("interface-own-{name}"), &arguments), ""))
}

#[test]
fn a_handle_frees_its_blocks_itself_in_a_program_with_a_free_of_its_own() {
    if let Some(output) = run_own("malloc", &["-DOWN", "-fno-builtin"]) {
        assert!(output.status.success(), "{:?}: {}", output.status, text(&output));
    }
}

#[test]
fn the_resource_over_the_process_outlives_all_static_objects() {
    if let Some(output) = run_own("statics", &["-fsanitize=undefined", "-fno-sanitize-recover=all"]) {
        assert!(output.status.success(), "{:?}: {}", output.status, text(&output));
    }
}
