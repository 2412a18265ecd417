//! Reports of invalid frees: the exact line, then SIGABRT, or what the option `misuse` says instead.

mod harness;

use harness::{Program, Way};
use std::os::unix::process::ExitStatusExt;

const SIGABRT: i32 = 6;

/// Replaces addresses, which differ from run to run.
fn without_addresses(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.trim_start_matches(':').strip_prefix("0x") {
        Some(hex) if hex.trim_end().chars().all(|digit| digit.is_ascii_hexdigit()) => {
            if word.ends_with('\n') {
                "ADDRESS\n"
            } else {
                "ADDRESS"
            }
        }
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_named(misuse: &str, line: &str) {
    for way in harness::WAYS {
        let program = Program::new("misuse.c", way);
        let output = program.command().arg(misuse).output().expect("the program can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        // The emulator, if there is one, reports the signal as well.
        let said = said.split("qemu:").next().unwrap_or("");
        assert_eq!(without_addresses(said), format!("freestone: {line}\n"), "{way:?}");
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
