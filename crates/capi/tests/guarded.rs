//! Guarded sampling: what is done to a guarded block is reported with its stacks, and a correct program notices nothing.

mod harness;

use harness::{Program, WAYS, Way, foreign_target, text};
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;

const FULL: &str =
    "freestone: guard_sample: all 256 guarded blocks are in use; until some are freed, no other block is guarded\n";

fn run(program: &Program, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = program.command();
    command.args(arguments).env("FREESTONE_GUARD_SAMPLE", "1").envs(variables.iter().copied());
    command.output().expect("the program can be run")
}

/// What a report says of a fault: not every processor tells reads from writes.
fn as_known(part: &str) -> String {
    if harness::foreign_target().is_none_or(|target| target.starts_with("x86_64")) {
        return part.to_owned();
    }
    let part = part.replace("read of a freed", "access to a freed").replace("write to a freed", "access to a freed");
    ["read ", "write "].iter().fold(part, |part, verb| match part.strip_prefix(verb) {
        Some(rest) => format!("access {rest}"),
        None => part,
    })
}

/// Runs a program that commits a crime; the report has these parts, in this order.
fn is_reported(arguments: &[&str], parts: &[&str]) {
    for way in WAYS {
        let program = Program::new("guarded.c", way);
        let output = run(&program, arguments, &[]);
        let said = String::from_utf8_lossy(&output.stderr).replace(FULL, "");
        assert_eq!(output.status.signal(), Some(SIGABRT), "{way:?} {arguments:?}: {said}");
        let mut rest = said.as_str();
        for part in parts {
            let part = as_known(part);
            let at =
                rest.find(&part).unwrap_or_else(|| panic!("{way:?} {arguments:?}: no {part:?} in its place:\n{said}"));
            rest = &rest[at + part.len()..];
        }
        assert_eq!(said.matches("freestone: ").count(), 1, "{way:?}: {said}");
    }
}

const NOW: &str = "\n  in process ";
const ALLOCATED: &str = "\n  allocated in kernel thread ";
const FREED: &str = "\n  freed in kernel thread ";

#[test]
fn an_access_beside_a_block_is_reported_with_the_stack_of_its_allocation() {
    let block = "(48 bytes requested, 48-byte block), at offset";
    is_reported(&["overflow", "48"], &["write behind the end of a block: 0x", block, " 48 ", NOW, ALLOCATED]);
    is_reported(&["overflow", "1000"], &["write behind the end of a block: 0x", block, " 1000 ", NOW, ALLOCATED]);
    is_reported(&["underflow", "-1"], &["write before the start of a block: 0x", block, " -1 ", NOW, ALLOCATED]);
    is_reported(&["overread", "48"], &["read behind the end of a block: 0x", block, " 48 ", NOW, ALLOCATED]);
}

#[test]
fn a_byte_written_between_a_block_and_the_end_of_its_page_is_reported_when_the_block_is_freed() {
    let block = "(41 bytes requested, 48-byte block), at offset 41 ";
    is_reported(&["overflow_in_page"], &[" behind the end of a block: 0x", block, NOW, ALLOCATED]);
}

#[test]
fn a_use_after_free_is_reported_with_three_stacks() {
    let block = "(100 bytes requested, 112-byte block), at offset 8 ";
    is_reported(&["read_after_free"], &["read of a freed block: 0x", block, NOW, ALLOCATED, FREED]);
    is_reported(&["write_after_free"], &["write to a freed block: 0x", block, NOW, ALLOCATED, FREED]);
    is_reported(&["free_in_thread_then_use"], &["read of a freed block: 0x", NOW, ALLOCATED, FREED]);
}

#[test]
fn a_report_names_the_thread_that_has_the_heap_now() {
    for way in WAYS {
        let program = Program::new("guarded.c", way);
        for what in ["use_freed_in_a_later_thread", "use_freed_in_a_child"] {
            let output = run(&program, &[what], &[]);
            let (printed, said) = (String::from_utf8_lossy(&output.stdout), text(&output));
            let thread = printed.lines().next().expect("the program prints which thread uses the block");
            for part in [ALLOCATED, FREED] {
                assert!(said.contains(&format!("{part}{thread}:")), "{way:?} {what} {thread}: {said}");
            }
        }
    }
}

#[test]
fn double_and_interior_frees_are_reported_with_what_is_known() {
    is_reported(&["double_free"], &["double free of 0x", "(112-byte block, ", NOW, ALLOCATED, FREED]);
    is_reported(
        &["interior_free"],
        &["free of an address inside a block: 0x", " 32 bytes into a 112-byte", NOW, ALLOCATED],
    );
}

#[test]
fn mismatched_frees_of_guarded_blocks_are_reported_from_checks_on() {
    for way in WAYS {
        let program = Program::new("guarded.c", way);
        for (level, signal) in [("default", None), ("checks", Some(SIGABRT)), ("full", Some(SIGABRT))] {
            let output = run(&program, &["free_as_larger"], &[("FREESTONE_HARDEN", level)]);
            let said = text(&output);
            assert_eq!(output.status.signal(), signal, "{way:?} {level}: {said}");
            let is_named = said.contains(" (100 bytes requested), freed as 200 bytes") && said.contains(ALLOCATED);
            assert_eq!(is_named, signal.is_some(), "{way:?} {level}: {said}");
        }
    }
}

#[test]
fn the_stacks_lead_to_the_functions_that_used_freed_and_allocated_the_block() {
    if harness::foreign_target().is_some() || !harness::installed("addr2line") {
        return;
    }
    for way in WAYS {
        let program = Program::new("guarded.c", way);
        let said = text(&run(&program, &["read_after_free"], &[]));
        let object = format!("{}+", program.path().display());
        let mut functions = Vec::new();
        for stack in said.split(" kernel thread ").skip(1) {
            let frames = stack.lines().filter_map(|line| line.split_once(&object)).map(|(_, address)| address);
            let mut lines = std::process::Command::new("addr2line");
            functions.push(harness::succeed(lines.arg("-fe").arg(program.path()).args(frames)));
        }
        let expected = ["read_it", "allocate_it", "free_it"];
        assert_eq!(functions.len(), 3, "{way:?}: {said}");
        for (function, expected) in functions.iter().zip(expected) {
            assert!(function.contains(expected) && function.contains("main"), "{way:?} {expected}: {said}\n{function}");
        }
    }
}

#[test]
fn a_program_without_frame_pointers_and_call_frame_information_is_told_as_much_as_can_be() {
    let flags = ["-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    for way in WAYS {
        let program = Program::with_flags("guarded.c", way, &flags);
        let output = run(&program, &["read_after_free"], &[]);
        let said = text(&output);
        assert_eq!(output.status.signal(), Some(SIGABRT), "{way:?}: {said}");
        assert!(said.contains(&as_known("read of a freed block")) && said.contains(FREED), "{way:?}: {said}");
    }
}

#[test]
fn when_misuse_is_only_reported_the_program_goes_on() {
    let program = Program::new("guarded.c", Way::Preload);
    for (arguments, policy) in [
        (&["read_after_free"][..], "report"),
        (&["overflow", "48"], "report"),
        (&["double_free"], "report"),
        (&["read_after_free"], "ignore"),
    ] {
        let output = run(&program, arguments, &[("FREESTONE_MISUSE", policy)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        assert_eq!(said.replace(FULL, "").is_empty(), policy == "ignore", "{arguments:?}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "went on\n", "{arguments:?}");
    }
}

#[test]
fn the_programs_own_handler_is_called_after_the_report_and_for_faults_elsewhere() {
    for way in [Way::Preload, Way::Archive] {
        let program = Program::new("guarded.c", way);
        let first = [("HANDLER_FIRST", "1")];
        let output = run(&program, &["read_after_free"], &first);
        assert_eq!(output.status.code(), Some(7), "{way:?}: {}", text(&output));
        let said = text(&output);
        assert!(said.contains(&as_known("read of a freed block")) && said.contains(FREED), "{said}");
        let output = run(&program, &["null_write"], &[]);
        assert_eq!(output.status.signal(), Some(SIGSEGV), "{way:?}: {}", text(&output));
        assert!(harness::said(&output).is_empty(), "{way:?}: {}", text(&output));
        let output = run(&program, &["sent_signal"], &[]);
        assert_eq!(output.status.signal(), Some(SIGSEGV), "{way:?}: {}", text(&output));
    }
}

#[test]
fn what_the_programs_handler_wants_blocked_is_blocked_before_it_is_called() {
    if harness::emulated("an emulator has handlers of its own") {
        return;
    }
    let program = Program::new("write_barrier.c", Way::Preload);
    for option in [("FREESTONE_GUARD_SAMPLE", "20"), ("FREESTONE_HARDEN", "full")] {
        harness::succeed(program.command().env(option.0, option.1));
    }
}

#[test]
fn a_handler_that_the_program_installs_later_replaces_ours() {
    let program = Program::new("guarded.c", Way::Preload);
    let output = run(&program, &["later_handler"], &[]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    assert!(output.stderr.is_empty(), "{}", text(&output));
    let output = run(&program, &["jumping_handler"], &[]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_handler_that_replaces_ours_while_the_program_starts_is_asked_second_and_may_pass_on_to_ours() {
    const PASSED_ON: &str = "the program's handler\n";
    for way in [Way::Preload, Way::Archive] {
        let program = Program::new("guarded.c", way);
        let output = run(&program, &["passing_handler"], &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(SIGABRT), "{way:?}: {}", text(&output));
        assert_eq!(said.matches(&as_known("read of a freed block")).count(), 1, "{way:?}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), PASSED_ON, "{way:?}: {said}");
        let output = run(&program, &["passing_handler_null_write"], &[]);
        assert_eq!(output.status.signal(), Some(SIGSEGV), "{way:?}: {}", text(&output));
        assert!(harness::said(&output).is_empty(), "{way:?}: {}", text(&output));
    }
}

#[test]
fn a_forked_child_has_the_guarded_blocks_of_its_parent_and_its_own_faults() {
    for way in WAYS {
        let program = Program::new("guarded.c", way);
        let output = run(&program, &["child"], &[]);
        assert!(output.status.success(), "{way:?}: {}", text(&output));
        assert!(text(&output).contains(&as_known("read of a freed block")), "{way:?}: {}", text(&output));
    }
}

#[test]
fn a_correct_program_notices_nothing_at_any_rate_and_level() {
    for way in WAYS {
        let program = Program::new("guarded.c", way);
        for what in ["behave", "threads"] {
            for rate in ["1", "7", "1000"] {
                let output = run(&program, &[what], &[("FREESTONE_GUARD_SAMPLE", rate)]);
                assert!(output.status.success(), "{way:?} {what} {rate}: {}", text(&output));
                let said = String::from_utf8_lossy(&output.stderr).replace(FULL, "");
                assert!(said.is_empty(), "{way:?} {what} {rate}: {said}");
            }
        }
    }
    let program = Program::new("guarded.c", Way::Preload);
    for level in ["off", "checks"] {
        let output = run(&program, &["behave"], &[("FREESTONE_GUARD_SAMPLE", "20"), ("FREESTONE_HARDEN", level)]);
        assert!(output.status.success(), "{level}: {}", text(&output));
    }
}

/// The C library allocates in it before it can be asked which object an address is in.
#[test]
fn a_static_program_has_guarded_blocks_from_its_first_allocation_on() {
    if foreign_target().is_some() {
        return;
    }
    for how in ["-static", "-static-pie"] {
        let program = Program::with_flags("guarded.c", Way::Archive, &[how]);
        for options in [[("FREESTONE_GUARD_SAMPLE", "1")], [("FREESTONE_BACKGROUND", "on")]] {
            let output = run(&program, &["behave"], &options);
            assert!(output.status.success(), "{how} {options:?}: {}", text(&output));
        }
    }
}

#[test]
fn when_all_guarded_blocks_are_in_use_that_is_said_once() {
    let output = run(&Program::new("guarded.c", Way::Preload), &["exhaust"], &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(String::from_utf8_lossy(&output.stderr), FULL);
}

#[test]
fn a_rate_that_is_none_is_refused_and_nothing_is_guarded() {
    let program = Program::new("guarded.c", Way::Preload);
    for (rate, why) in [("0", "out of range"), ("1073741825", "out of range"), ("often", "not a number")] {
        let output = run(&program, &["refused"], &[("FREESTONE_GUARD_SAMPLE", rate)]);
        assert!(output.status.success(), "{rate}: {}", text(&output));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.starts_with(&format!("freestone: option FREESTONE_GUARD_SAMPLE={rate} (environment) ignored: {why}")),
            "{said}"
        );
    }
}

#[test]
fn a_rate_that_is_set_while_the_program_runs_holds_from_then_on() {
    let program = Program::new("guarded.c", Way::Shared);
    let mut command = program.command();
    let output = command.arg("set_late").output().expect("the program can be run");
    assert!(text(&output).contains(FULL), "{}", text(&output));
}
