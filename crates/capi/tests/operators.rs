//! The C++ operators, in each way a program gets the library: `c/operators*.cpp`.

mod harness;

use harness::{
    Program, WAYS, Way, cpp_compiler, crate_dir, emulated, expect_silent, foreign_target, installed, scratch,
    shared_library, succeed, text,
};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Runs a part of `operators.cpp`, which is compiled once for each way.
fn run_part(part: &str) {
    static PROGRAMS: [OnceLock<Program>; 3] = [const { OnceLock::new() }; 3];
    if cpp_compiler().is_none() {
        return;
    }
    for (way, program) in WAYS.into_iter().zip(&PROGRAMS) {
        let program = program.get_or_init(|| Program::new("operators.cpp", way));
        let mut command = program.command();
        if part == "makes_room" {
            command.env("FREESTONE_LIMIT_HARD", "64m");
        }
        expect_silent(command.arg(part), way);
    }
}

macro_rules! parts {
    ($($part:ident: $sentence:ident),* $(,)?) => {$(
        #[test]
        fn $sentence() {
            run_part(stringify!($part));
        }
    )*};
}

parts! {
    forms: every_form_gives_and_takes_blocks_of_every_size_and_alignment,
    wrong_sizes: a_wrong_size_corrupts_nothing,
    makes_room: a_new_handler_that_makes_room_is_enough,
    no_memory: without_memory_handlers_are_called_and_exceptions_thrown,
    constructors: a_constructor_that_throws_leaks_nothing,
    containers: containers_work,
    resources: memory_resources_work,
    threads: threads_delete_what_others_made,
}

#[test]
fn a_static_program_has_the_operators_too() {
    if cpp_compiler().is_none() || foreign_target().is_some() {
        return;
    }
    let program = Program::with_flags("operators.cpp", Way::Archive, &["-static"]);
    for part in ["forms", "no_memory", "constructors", "containers", "threads"] {
        // Without a loader nothing can be looked up: see `operators::failure`.
        expect_silent(program.command().arg(part).env("NO_LOADER", "1"), Way::Archive);
    }
}

/// With the flags that the guide names.
#[test]
fn a_program_with_its_cpp_library_as_an_archive_catches_what_is_thrown() {
    if cpp_compiler().is_none() || foreign_target().is_some() {
        return;
    }
    const ASKED: [&str; 2] = ["-Wl,-u,_ZSt17__throw_bad_allocv", "-Wl,-u,_ZSt15get_new_handlerv"];
    for how in ["-static", "-static-libstdc++"] {
        let program = Program::with_flags("operators_caught.cpp", Way::Archive, &[how, ASKED[0], ASKED[1]]);
        expect_silent(&mut program.command(), Way::Archive);
    }
}

#[test]
fn a_program_that_brings_its_own_malloc_keeps_it() {
    if cpp_compiler().is_none() {
        return;
    }
    for way in [Way::System, Way::Preload, Way::Shared] {
        for more in ["-fpie", "-no-pie"] {
            let program = Program::with_flags("operators_own.cpp", way, &["-DOWN_MALLOC", more]);
            expect_silent(&mut program.command(), way);
        }
    }
}

#[test]
fn a_program_that_brings_its_own_operators_sees_them_called() {
    if cpp_compiler().is_none() {
        return;
    }
    for way in [Way::System, Way::Preload, Way::Shared, Way::Archive] {
        for own in ["-DOWN_PLAIN", "-DOWN_ALIGNED"] {
            let program = Program::with_flags("operators_own.cpp", way, &[own, "-Wno-sized-deallocation"]);
            expect_silent(&mut program.command(), way);
        }
        let program = Program::with_flags("operators_counted.cpp", way, &["-Wno-sized-deallocation"]);
        expect_silent(&mut program.command(), way);
    }
}

/// rustc has jemalloc inside, and C++ code.
#[test]
fn a_compiler_with_an_allocator_inside_works() {
    if foreign_target().is_some() {
        return;
    }
    let source = scratch("operators").join("sample.rs");
    std::fs::write(&source, "pub fn sum(numbers: &[u64]) -> u64 { numbers.iter().sum() }\n")
        .expect("a file of our own");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "obj", "-O", "-o"]);
    command.arg(source.with_extension("o")).arg(&source).env("LD_PRELOAD", shared_library());
    expect_silent(&mut command, Way::Preload);
}

/// The plugin of `operators_load.c` and `operators_load.cpp`.
fn plugin(test: &str) -> Option<PathBuf> {
    let path = scratch("programs").join(format!("operators-plugin-{test}.so"));
    let mut compile = Command::new(cpp_compiler()?);
    compile.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
    succeed(compile.arg(&path).arg(crate_dir().join("tests/c/operators_plugin.cpp")));
    Some(path)
}

#[test]
fn a_library_that_is_loaded_late_finds_its_runtime() {
    let Some(plugin) = plugin("late") else { return };
    for way in [Way::Preload, Way::Shared] {
        let program = Program::new("operators_load.c", way);
        expect_silent(program.command().arg(&plugin), way);
    }
}

#[test]
fn a_library_that_prefers_its_own_functions_shares_blocks_with_the_program() {
    let Some(plugin) = plugin("deep") else { return };
    for way in WAYS {
        let program = Program::new("operators_load.cpp", way);
        for option in ["off", "on"] {
            expect_silent(program.command().arg(&plugin).env("FREESTONE_DEEPBIND", option), way);
        }
    }
}

#[test]
fn without_a_runtime_the_process_ends_with_a_sentence() {
    let output = Program::new("operators_load.c", Way::Preload).command().arg("alone").output().expect("it runs");
    assert!(text(&output).contains("no C++ runtime"), "{}", text(&output));
    assert_eq!(output.status.signal(), Some(6), "{}", text(&output));
}

#[test]
fn an_exception_that_is_not_caught_ends_the_process_as_the_runtime_says() {
    if cpp_compiler().is_none() || emulated("the runtime's words differ") {
        return;
    }
    for way in WAYS {
        for flag in ["-fexceptions", "-fno-exceptions"] {
            let output = Program::with_flags("operators_fails.cpp", way, &[flag]).command().output().expect("it runs");
            assert!(text(&output).contains("bad_alloc"), "{way:?} {flag}: {}", text(&output));
            assert_eq!(output.status.signal(), Some(6), "{way:?} {flag}: {}", text(&output));
        }
    }
}

/// Instructions that the loop of `operators_loop.cpp` takes each time around, and the loop's own: 16 in the program, four jumps to the library.
#[test]
fn a_new_and_a_delete_of_each_kind_take_as_many_instructions_as_malloc_and_free() {
    if cpp_compiler().is_none() || foreign_target().is_some() || !installed("valgrind") || !cfg!(target_arch = "x86_64")
    {
        return;
    }
    const LOOP: u64 = 20;
    let allowed = hot("malloc") * 2 + hot("free") * 2 + LOOP;
    for flags in [&["-O2"][..], &["-O2", "-fno-pie", "-no-pie"]] {
        let program = Program::with_flags("operators_loop.cpp", Way::Shared, flags);
        let [few, many] = ["1000", "101000"].map(|rounds| instructions(&program, rounds));
        // Now and then a bin is looked at.
        let taken = (many - few) / 100_000;
        println!("{flags:?}: {taken} instructions each time around");
        assert!(taken <= allowed, "{flags:?}: {taken} instructions, {allowed} allowed");
    }
}

/// What `hotpath.golden` says of a function.
fn hot(symbol: &str) -> u64 {
    let golden = std::fs::read_to_string(crate_dir().join("../../hotpath.golden")).expect("hotpath.golden is there");
    let head =
        golden.lines().find_map(|line| line.strip_prefix(symbol)?.strip_prefix(" (")?.strip_suffix(" instructions)"));
    head.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{symbol} is in hotpath.golden"))
}

/// Instructions that a process takes, as callgrind counts them.
fn instructions(program: &Program, rounds: &str) -> u64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program.path()).arg(rounds);
    let output = command.env("LD_LIBRARY_PATH", harness::library_dir()).output().expect("valgrind can be run");
    let said = text(&output);
    let count = said.lines().find_map(|line| line.split_once("Collected :"));
    count.and_then(|(_, n)| n.trim().parse().ok()).unwrap_or_else(|| panic!("valgrind counts:\n{said}"))
}
