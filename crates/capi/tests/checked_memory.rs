//! The library of checked memory functions beside the allocator.

mod harness;

use harness::{
    Program, Way, c_compiler, crate_dir, foreign_target, memory_library, scratch, shared_library, succeed, text,
};
use std::collections::BTreeSet;
use std::process::{Command, Output};

/// Both libraries, the allocator's first or second.
fn both(is_allocator_first: bool) -> String {
    let (allocator, memory) = (shared_library(), memory_library());
    let (first, second) = if is_allocator_first { (allocator, memory) } else { (memory, allocator) };
    format!("{} {}", first.display(), second.display())
}

/// A part of the program at a level of the option `harden`; `None` where programs are for another machine.
fn run(preload: &str, level: &str, arguments: &[&str]) -> Option<Output> {
    if foreign_target().is_some() {
        println!("skipped: the fortified functions are glibc's");
        return None;
    }
    let mut command = Program::new("checked_memory.c", Way::System).command();
    command.args(arguments).env("LD_PRELOAD", preload).env("FREESTONE_HARDEN", level);
    Some(command.output().expect("the program can be run"))
}

fn passes(preload: &str, level: &str, arguments: &[&str]) {
    let Some(output) = run(preload, level, arguments) else { return };
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {}\n{}", output.status, text(&output));
}

/// The names of the functions, those that read and those that do not.
fn names() -> Vec<String> {
    let output = run("", "off", &["names"]);
    output.map_or_else(Vec::new, |output| text(&output).lines().map(str::to_owned).collect())
}

/// The name that is reported: that of the function without its fortified form.
fn plain(name: &str) -> &str {
    name.trim_start_matches("__").trim_end_matches("_chk")
}

/// Runs a part for each function, which must end with a report that has these words.
fn each_ends(part: &str, words: &str, is_meant: impl Fn(&str) -> bool) {
    for name in names().iter().filter(|name| is_meant(plain(name))) {
        let Some(output) = run(&both(true), "full", &[part, name]) else { return };
        let report = format!("freestone: {} {words}", plain(name));
        assert!(!output.status.success() && text(&output).starts_with(&report), "{part} {name}: {}", text(&output));
    }
}

#[test]
fn nothing_inside_a_block_is_reported() {
    for is_allocator_first in [true, false] {
        passes(&both(is_allocator_first), "full", &["inside"]);
    }
}

#[test]
fn each_function_does_what_a_loop_over_bytes_does() {
    passes(&both(true), "full", &["model"]);
    passes(&both(true), "default", &["model"]);
    passes(&memory_library().display().to_string(), "full", &["model"]);
}

#[test]
fn a_write_behind_a_block_is_reported_before_it_is_done() {
    each_ends("write_behind", "writes beyond the end of a block", |_| true);
}

#[test]
fn a_read_behind_a_block_is_reported() {
    let writes_only = ["memset", "bzero", "explicit_bzero"];
    each_ends("read_behind", "reads beyond the end of a block", |name| !writes_only.contains(&name));
}

#[test]
fn a_write_to_a_freed_block_is_reported() {
    each_ends("write_freed", "writes in a freed block", |_| true);
}

#[test]
fn a_write_from_the_middle_of_a_large_block_beyond_its_end_is_reported() {
    let Some(output) = run(&both(true), "full", &["behind_a_large_block"]) else { return };
    assert!(text(&output).starts_with("freestone: memset writes beyond the end of a block"), "{}", text(&output));
}

#[test]
fn the_c_library_says_when_there_is_less_room_than_the_compiler_knows_of() {
    for name in names().iter().filter(|name| name.ends_with("_chk")) {
        let Some(output) = run(&both(true), "full", &["beyond_the_room", name]) else { return };
        assert!(text(&output).contains("buffer overflow detected"), "{name}: {}", text(&output));
    }
}

#[test]
fn below_the_level_full_the_functions_only_do_their_work() {
    for level in ["off", "default", "checks"] {
        let Some(output) = run(&both(true), level, &["write_behind", "memcpy"]) else { return };
        assert!(output.status.success() && output.stderr.is_empty(), "{level}: {}", text(&output));
    }
}

#[test]
fn signal_handlers_may_copy_while_the_allocator_works() {
    passes(&both(true), "full", &["in_signal_handlers"]);
}

#[test]
fn little_address_space_is_no_reason_to_report() {
    if foreign_target().is_some() {
        return;
    }
    let program = Program::new("checked_memory.c", Way::System);
    for limit_kib in ["150000", "1000000"] {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "ulimit -v \"$1\"; LD_PRELOAD=$2 FREESTONE_HARDEN=full exec \"$3\" inside",
            "sh",
            limit_kib,
        ]);
        command.arg(both(true)).arg(program.path());
        let output = command.output().expect("the program can be run");
        assert!(output.status.success() && output.stderr.is_empty(), "{limit_kib}: {}", text(&output));
    }
}

#[test]
fn under_misuse_report_each_finding_is_said_and_the_function_does_its_work() {
    if foreign_target().is_some() {
        return;
    }
    for (policy, says) in [("report", true), ("ignore", false)] {
        let mut command = Program::new("checked_memory.c", Way::System).command();
        command.args(["write_freed", "memcpy"]).env("LD_PRELOAD", both(true));
        command.envs([("FREESTONE_HARDEN", "full"), ("FREESTONE_MISUSE", policy)]);
        let output = command.output().expect("the program can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == b"done\n", "{policy}: {}", text(&output));
        assert_eq!(said.matches("freestone: memcpy writes in a freed block").count(), usize::from(says), "{said}");
    }
}

#[test]
fn a_forked_child_is_checked_too() {
    let Some(output) = run(&both(true), "full", &["in_a_child", "memcpy"]) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(said.matches("freestone: ").count(), 1, "{said}");
    assert!(said.starts_with("freestone: memcpy writes beyond the end of a block"), "{said}");
}

#[test]
fn blocks_of_explicit_heaps_are_checked() {
    for name in ["memcpy", "memset", "strcpy"] {
        let Some(output) = run(&both(true), "full", &["in_an_explicit_heap", name]) else { return };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "inside\n", "{name}: {}", text(&output));
        let report = format!("freestone: {name} writes beyond the end of a block");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with(&report), "{name}: {}", text(&output));
    }
}

/// Which fault it finds: a function that calls another, or reads an address, by way of a table that the loader has not filled in yet.
#[test]
fn resolvers_that_run_before_the_library_is_relocated_may_call_every_function() {
    if foreign_target().is_some() {
        println!("skipped: the fortified functions are glibc's");
        return;
    }
    let library = scratch("programs").join("libresolver.so");
    let mut compile = Command::new(c_compiler());
    compile.args([
        "-O1",
        "-fno-builtin",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-Wl,-z,now",
        "-DLIBRARY",
        "-o",
    ]);
    succeed(compile.arg(&library).arg(crate_dir().join("tests/c/resolver.c")));
    let link = [library.display().to_string(), format!("-Wl,-rpath,{}", scratch("programs").display())];
    let program = Program::with_flags("resolver.c", Way::System, &link.each_ref().map(String::as_str));
    for preload in [both(true), both(false), memory_library().display().to_string()] {
        succeed(program.command().env("LD_PRELOAD", preload).env("FREESTONE_HARDEN", "full"));
    }
}

#[test]
fn every_function_that_is_exported_is_tried() {
    let exported = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(memory_library()));
    let exported: BTreeSet<_> = exported.lines().filter_map(|line| line.split(' ').nth(2).map(str::to_owned)).collect();
    let names: BTreeSet<_> = names().into_iter().collect();
    assert!(names.is_empty() || names == exported, "{names:?} {exported:?}");
}

#[test]
fn the_library_needs_only_the_c_library() {
    let dynamic = succeed(Command::new("readelf").args(["--wide", "--dynamic"]).arg(memory_library()));
    assert_eq!(dynamic.lines().filter(|line| line.contains("(NEEDED)")).count(), 1, "{dynamic}");
    assert!(dynamic.contains("[libfreestone_memory.so.0]"), "{dynamic}");
}
