//! Forks: beside stdio, with handlers of every kind, in generations, beside heaps and purges.

mod harness;

use harness::{Program, WAYS, Way, emulated, expect_silent, is_musl, shared_library, text};

/// qemu itself is not safe to fork while its threads work: such storms hang with the system's allocator as well.
fn is_emulator() -> bool {
    emulated("qemu is not safe to fork while its threads work")
}

fn run(arguments: &[&str]) {
    for way in WAYS {
        expect_silent(Program::new("fork.c", way).command().args(arguments), way);
    }
}

#[test]
fn the_locks_are_taken_after_the_handlers_of_every_constructor() {
    if is_emulator() {
        return;
    }
    run(&["last"]);
}

#[test]
fn the_shared_library_registers_its_handlers_before_the_programs_first_instruction() {
    if is_emulator() || is_musl() {
        return;
    }
    for way in [Way::Preload, Way::Shared] {
        let program = Program::with_flags("fork.c", way, &["-DASKS_FIRST"]);
        expect_silent(program.command().arg("last"), way);
    }
}

#[test]
fn handlers_may_allocate_no_matter_when_they_were_registered() {
    if is_emulator() {
        return;
    }
    run(&["handlers", "0"]);
    run(&["handlers", "4"]);
}

#[test]
fn a_handler_may_fork() {
    if is_emulator() || is_musl() {
        return;
    }
    run(&["inner"]);
}

#[test]
fn sixteen_threads_fork_beside_stdio() {
    if is_emulator() || is_musl() {
        return;
    }
    for way in [Way::Preload, Way::Archive] {
        expect_silent(Program::new("fork.c", way).command().arg("beside_stdio"), way);
    }
}

#[test]
fn a_program_of_one_thread_forks_within_stdio() {
    if is_musl() {
        return;
    }
    run(&["within_stdio"]);
}

#[test]
fn three_hundred_generations_of_children() {
    if is_emulator() {
        return;
    }
    expect_silent(Program::new("fork.c", Way::Preload).command().arg("generations"), Way::Preload);
}

#[test]
fn forks_beside_explicit_heaps_that_are_made_and_deleted() {
    if is_emulator() {
        return;
    }
    expect_silent(Program::new("fork.c", Way::Preload).command().arg("beside_heaps"), Way::Preload);
}

#[test]
fn forks_beside_purges() {
    if is_emulator() {
        return;
    }
    expect_silent(Program::new("fork.c", Way::Preload).command().arg("beside_purges"), Way::Preload);
}

#[test]
fn forks_beside_threads_that_purge_when_their_heap_has_ended() {
    if is_emulator() {
        return;
    }
    expect_silent(Program::new("fork.c", Way::Preload).command().arg("beside_threads_that_end"), Way::Preload);
}

#[test]
fn a_child_leaves_alone_what_waited_for_other_threads_and_uses_what_it_frees_of_theirs() {
    for way in WAYS {
        expect_silent(&mut Program::new("fork_waiting.c", way).command(), way);
    }
}

#[test]
fn starting_a_process_without_fork_runs_no_handlers() {
    if is_emulator() {
        return;
    }
    run(&["without_handlers"]);
}

#[test]
fn a_child_calls_its_pressure_callback_even_if_the_parent_was_calling_it() {
    if is_emulator() {
        return;
    }
    run(&["pressure"]);
}

#[test]
fn a_child_reports_misuse_even_if_another_thread_was_making_the_first_call() {
    if is_emulator() || is_musl() {
        return;
    }
    let program = Program::with_flags("fork_first_call.c", Way::System, &["-rdynamic", "-ldl"]);
    let mut command = program.command();
    let output =
        command.arg(shared_library()).env("FREESTONE_GUARD_SAMPLE", "1").output().expect("the program can be run");
    let said = text(&output);
    assert!(output.status.success() && said.contains("freestone: write to a freed block"), "{}: {said}", output.status);
}
