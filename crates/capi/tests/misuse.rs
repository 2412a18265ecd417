//! Reports of invalid frees: the exact first line and the stack, then SIGABRT, or what the option `misuse` says instead.

mod harness;

use harness::{Program, Way};
use std::os::unix::process::ExitStatusExt;

const SIGABRT: i32 = 6;

/// Replaces addresses, which differ from run to run.
fn without_addresses(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.trim_start_matches(':').strip_prefix("0x") {
        Some(hex) if hex.chars().all(|digit| digit.is_ascii_hexdigit()) => "ADDRESS",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_named(misuse: &str, line: &str) {
    for way in harness::WAYS {
        let program = Program::new("misuse.c", way);
        let output = program.command().arg(misuse).output().expect("the program can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        let (first, rest) = said.split_once('\n').unwrap_or((&said, ""));
        assert_eq!(without_addresses(first), format!("freestone: {line}"), "{way:?}");
        assert!(rest.starts_with("  in process "), "{way:?}: {said}");
        assert_eq!(output.status.signal(), Some(SIGABRT), "{way:?}");
    }
    let program = Program::new("misuse.c", Way::Preload);
    for (policy, says) in [("report", true), ("ignore", false)] {
        let output =
            program.command().arg(misuse).env("FREESTONE_MISUSE", policy).output().expect("the program can be run");
        assert!(output.status.success(), "{policy}: {}", harness::text(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "went on\n", "{policy}");
        assert_eq!(!output.stderr.is_empty(), says, "{policy}: {}", harness::text(&output));
    }
}

#[test]
fn a_small_block_freed_twice_is_reported_when_its_bin_is_flushed() {
    is_named("double_small", "double free of ADDRESS (48-byte block, freed by thread 1)");
}

#[test]
fn a_block_of_an_explicit_heap_freed_twice_is_reported_at_once() {
    // The number is the explicit heap's, which did it.
    is_named("double_of_heap", "double free of ADDRESS (48-byte block, freed by thread 2)");
}

#[test]
fn a_large_block_freed_twice_is_reported() {
    is_named(
        "double_large",
        "free of a pointer that Freestone did not allocate, or has taken back: ADDRESS (freed by thread 1)",
    );
}

#[test]
fn a_cached_large_block_freed_twice_is_reported_with_its_size() {
    is_named("double_kept", "double free of ADDRESS (1048576-byte block, freed by thread 1)");
}

#[test]
fn the_inside_of_a_small_block_is_reported_when_its_bin_is_flushed() {
    is_named(
        "interior_small",
        "free of an address inside a block: ADDRESS is 16 bytes into a 96-byte block (freed by thread 1)",
    );
}

#[test]
fn the_inside_of_a_large_block_is_reported() {
    is_named(
        "interior_large",
        "free of an address inside a block: ADDRESS is 65536 bytes into a 1048576-byte block (freed by thread 1)",
    );
}

#[test]
fn foreign_pointers_are_reported() {
    for misuse in ["stack", "static", "mapping", "window", "realloc_foreign", "usable_foreign"] {
        is_named(
            misuse,
            "free of a pointer that Freestone did not allocate, or has taken back: ADDRESS (freed by thread 1)",
        );
    }
}

/// The frames of the program in what it said, as addresses in its file.
fn frames_of(program: &Program, said: &str) -> Vec<String> {
    let object = format!("{}+", program.path().display());
    let frames = said.lines().filter_map(|line| line.split_once(&object));
    frames.map(|(_, address)| address.to_owned()).collect()
}

#[test]
fn the_stack_leads_to_the_line_of_the_program_that_is_at_fault() {
    if harness::foreign_target().is_some() || !harness::installed("addr2line") {
        println!("skipped: another target's program, or no addr2line");
        return;
    }
    for way in harness::WAYS {
        let program = Program::new("misuse.c", way);
        let output = program.command().arg("static").output().expect("the program can be run");
        let said = harness::text(&output);
        let mut lines = std::process::Command::new("addr2line");
        lines.arg("-fe").arg(program.path()).args(frames_of(&program, &said));
        let lines = harness::succeed(&mut lines);
        assert!(lines.contains("main\n") && lines.contains("misuse.c:"), "{way:?}: {said}\n{lines}");
    }
}

#[test]
fn a_program_without_frame_pointers_and_call_frame_information_has_a_shorter_stack() {
    let flags = ["-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    for way in harness::WAYS {
        let program = Program::with_flags("misuse.c", way, &flags);
        let output = program.command().arg("static").output().expect("the program can be run");
        let said = harness::text(&output);
        assert_eq!(output.status.signal(), Some(SIGABRT), "{way:?}: {said}");
        assert!(said.contains("free of a pointer that Freestone did not allocate"), "{way:?}: {said}");
    }
}

#[test]
fn in_a_sandbox_a_report_is_one_line() {
    let program = Program::new("misuse.c", Way::Preload);
    let output =
        program.command().arg("static").env("FREESTONE_SANDBOX", "on").output().expect("the program can be run");
    assert_eq!(harness::said(&output).lines().count(), 1, "{}", harness::text(&output));
}

#[test]
fn the_report_file_gets_what_standard_error_gets() {
    let program = Program::new("misuse.c", Way::Preload);
    let report = harness::scratch("programs").join(format!("misuse-report-{}", std::process::id()));
    let mut command = program.command();
    let output = command.arg("static").env("FREESTONE_REPORT", &report).output().expect("the program can be run");
    let lines = std::fs::read_to_string(&report).expect("a report");
    std::fs::remove_file(&report).expect("ours");
    let misuse = lines.lines().nth(1).expect("a line behind that of the start");
    assert!(misuse.starts_with(r#"{"event":"misuse","pid":"#), "{misuse}");
    let said = harness::said(&output);
    assert!(misuse.contains(&said.replace('\n', "\\n")), "{misuse}\n{said}");
}
