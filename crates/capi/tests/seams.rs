//! The seams: the first and last calls of a process, its threads and libraries, forks, and limits of the kernel. `docs/testing.md` has the table.
//!
//! With `SEAMS_LONG=1` (`cargo xtask seams --long`) the storms are as long as the table says; with `SEAMS_MACHINE=1` settings of
//! the machine are changed for as long as a test needs them: this requires root, and only on a machine that runs nothing else.

mod harness;

use harness::{
    Program, WAYS, Way, emulated, expect_silent, foreign_target, is_musl, scratch, shared_library, succeed, text,
};
use std::path::PathBuf;
use std::process::Command;

/// Runs a part in each way and prints its output: counts, or why it skipped.
fn run(source: &str, arguments: &[&str]) {
    for way in WAYS {
        let said = expect_silent(Program::new(source, way).command().args(arguments), way);
        print!("{way:?}: {said}");
    }
}

/// A count: `short`, or `long` in the long form.
fn count(short: u32, long: u32) -> String {
    if std::env::var_os("SEAMS_LONG").is_some() { long } else { short }.to_string()
}

fn order(part: &str) {
    if emulated("a program cannot start itself again") {
        return;
    }
    for way in WAYS {
        let said = expect_silent(Program::new("seams_order.c", way).command().arg(part), way);
        let cases = said.trim_start_matches('.').split_whitespace().next().expect("the number of cases");
        assert_eq!(said.matches('.').count().to_string(), cases, "{way:?}: as many were reached as were started");
    }
}

#[test]
fn each_entry_point_may_be_the_first_call_in_each_place_of_a_process() {
    order("first");
}

#[test]
fn a_block_of_each_place_may_be_freed_in_each_later_place() {
    order("pairs");
}

/// The plugin of `seams_load.c`.
fn plugin() -> PathBuf {
    let path = scratch("programs").join("seams-plugin.so");
    let draft = scratch("programs").join(format!("seams-plugin-{}.so", std::process::id()));
    let mut compile = Command::new(harness::c_compiler());
    compile.args(["-O1", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o"]);
    succeed(compile.arg(&draft).arg(harness::crate_dir().join("tests/c/seams_plugin.c")));
    std::fs::rename(&draft, &path).expect("a file of our own can be renamed");
    path
}

/// Copies that the dynamic linker takes for other libraries, because their names differ.
fn copies(test: &str) -> [PathBuf; 2] {
    [1, 2].map(|number| {
        let to = scratch("programs").join(format!("seams-{test}-{number}.so"));
        std::fs::copy(shared_library(), &to).expect("the target folder can be written");
        to
    })
}

fn load(way: Way, part: &str, libraries: &[PathBuf]) {
    expect_silent(Program::new("seams_load.c", way).command().arg(part).args(libraries), way);
}

#[test]
fn unloading_a_plug_in_frees_no_block() {
    if is_musl() {
        println!("skipped: musl unloads no library");
        return;
    }
    WAYS.into_iter().for_each(|way| load(way, "plugin", &[plugin()]));
}

#[test]
fn a_closed_copy_of_the_library_stays() {
    let [copy, _] = copies("close");
    WAYS.into_iter().for_each(|way| load(way, "close", std::slice::from_ref(&copy)));
}

#[test]
fn three_copies_in_one_process_use_only_their_own_blocks() {
    let copies = copies("three");
    WAYS.into_iter().for_each(|way| load(way, "copies", &copies));
}

#[test]
fn copies_in_namespaces_of_their_own_use_only_their_own_blocks() {
    if is_musl() {
        println!("skipped: musl has no dlmopen");
        return;
    }
    let copies = copies("namespace");
    WAYS.into_iter().for_each(|way| load(way, "namespace", &copies));
}

#[test]
fn every_call_fits_on_a_small_stack() {
    if emulated("threads of an emulator have its stacks") {
        return;
    }
    run("seams_threads.c", &["small_stacks"]);
}

#[test]
fn a_handler_on_an_alternate_stack_may_allocate_if_it_interrupts_no_call() {
    run("seams_threads.c", &["signals"]);
}

#[test]
fn no_call_is_a_cancellation_point_and_a_cancelled_thread_leaves_its_blocks() {
    run("seams_threads.c", &["cancellation"]);
}

#[test]
fn under_mlockall_only_used_memory_is_locked_and_calloc_is_zero() {
    if emulated("what is locked is the emulator's") {
        return;
    }
    run("seams_threads.c", &["locked"]);
}

#[test]
fn sixteen_threads_fork_beside_stdio() {
    if emulated("qemu itself is not safe to fork while its threads work") {
        return;
    }
    run("seams_fork.c", &["forks", &count(800, 1_000_000)]);
}

/// Microseconds that a fork takes in a program of 64 threads of which one purges: the median of `n_forks`.
fn fork_us(way: Way, n_forks: &str) -> f64 {
    let program = Program::new("seams_fork_time.c", way);
    let said = expect_silent(program.command().args(["64", n_forks]).env("FREESTONE_DECAY_MS", "1"), way);
    let median = said.split_whitespace().next().and_then(|median| median.parse().ok());
    median.unwrap_or_else(|| panic!("{way:?} printed {said}"))
}

/// The long form compares times, in five rounds; the short one shows that the forks come to an end.
#[test]
fn a_fork_beside_purges_takes_at_most_twice_as_long_as_glibcs() {
    if emulated("64 threads and forks take too long") || is_musl() {
        return;
    }
    let (rounds, n_forks) = if count(0, 1) == "0" { (1, "10") } else { (5, "200") };
    let mut ratios: Vec<f64> =
        (0..rounds).map(|_| fork_us(Way::Preload, n_forks) / fork_us(Way::System, n_forks)).collect();
    ratios.sort_by(f64::total_cmp);
    println!("a fork beside purges in 64 threads takes {ratios:.2?} of glibc's time");
    assert!(rounds == 1 || ratios[rounds / 2] <= 2.0, "{ratios:?}");
}

#[test]
fn sixteen_threads_spawn_programs() {
    if emulated("the programs would have to be the target's") {
        return;
    }
    run("seams_fork.c", &["spawns", &count(160, 20_000)]);
}

#[test]
fn children_of_vfork_leave_no_lock_behind() {
    if emulated("qemu makes vfork a fork") {
        return;
    }
    run("seams_fork.c", &["vforks", &count(640, 100_000)]);
}

#[test]
fn memory_that_children_do_not_inherit_breaks_no_child() {
    if emulated("qemu has its own memory") {
        return;
    }
    run("seams_fork.c", &["not_for_children", "0"]);
}

#[test]
fn a_process_ends_while_another_of_its_threads_forks() {
    if emulated("qemu itself is not safe to fork while its threads work") {
        return;
    }
    run("seams_fork.c", &["exits", &count(50, 5000)]);
}

#[test]
fn a_fork_in_a_signal_handler_that_interrupted_the_allocator_waits_for_no_lock() {
    if emulated("qemu runs handlers between two translated blocks only") {
        return;
    }
    let n_forks = count(100, 5000);
    // Memory is purged at once, and freed large blocks are closed: that is interrupted, too.
    for (name, value) in [("FREESTONE_DECAY_MS", "0"), ("FREESTONE_HARDEN", "full")] {
        for way in WAYS {
            let program = Program::new("seams_signal_fork.c", way);
            for part in ["alone", "beside"] {
                let said = expect_silent(program.command().args([part, &n_forks]).env(name, value), way);
                print!("{way:?}, {name}={value}, {part}: {said}");
            }
        }
    }
}

#[test]
fn threads_that_exit_with_live_blocks_leave_nothing_else() {
    run("seams_fork.c", &["threads", &count(3000, 100_000)]);
}

#[test]
fn at_the_mapping_limit_free_and_purge_work_and_freed_memory_can_be_allocated_again() {
    if emulated("the limit is the emulator's as well") {
        return;
    }
    run("seams_kernel.c", &["mappings"]);
}

#[test]
fn blocks_that_are_short_beside_all_addresses_get_no_mappings_of_their_own() {
    if emulated("the mappings are the emulator's") {
        return;
    }
    run("seams_mappings.c", &["resized"]);
    run("seams_mappings.c", &["huge"]);
}

#[test]
fn no_file_of_proc_or_sys_is_needed() {
    if emulated("qemu needs /proc") {
        return;
    }
    run("seams_kernel.c", &["no_files"]);
    run("seams_kernel.c", &["empty_root"]);
}

#[test]
fn blocks_may_be_longer_than_4_gib() {
    if emulated("the address space is the emulator's") {
        return;
    }
    run("seams_kernel.c", &["huge_sizes"]);
}

/// One test, because the settings are those of the machine.
#[test]
fn it_works_in_each_overcommit_mode_and_with_huge_pages_always() {
    if emulated("the machine's settings are not its own") {
        return;
    }
    for part in ["overcommit_0", "overcommit_1", "overcommit_2", "huge_pages"] {
        run("seams_kernel.c", &[part]);
    }
}

/// Whether programs of this machine can be compiled with a sanitizer.
fn can_compile(flags: &[&str]) -> bool {
    let probe = scratch("programs").join(format!("probe{}.c", flags.concat()));
    std::fs::write(&probe, "int main(void) { return 0; }\n").expect("the target folder can be written");
    let mut compile = Command::new(harness::c_compiler());
    compile.args(flags).arg("-o").arg(probe.with_extension("out")).arg(&probe);
    foreign_target().is_none() && compile.output().is_ok_and(|output| output.status.success())
}

/// AddressSanitizer's `malloc` is found first in each way; where it cannot be, its runtime reports that and exits.
#[test]
fn beside_address_sanitizer_its_malloc_is_used_and_explicit_heaps_work() {
    if !can_compile(&["-fsanitize=address", "-static-libasan"]) {
        println!("skipped: the compiler has no AddressSanitizer");
        return;
    }
    for (way, flags) in [
        (Way::Shared, &["-fsanitize=address"][..]),
        (Way::Shared, &["-fsanitize=address", "-static-libasan"]),
        (Way::Preload, &["-fsanitize=address", "-static-libasan"]),
    ] {
        let program = Program::with_flags("seams_asan.c", way, flags);
        // The leak checker traces this thread, which not every machine allows; symbolizing takes long.
        let command = |part| {
            let mut command = program.command();
            command.arg(part).env("ASAN_OPTIONS", "detect_leaks=0:symbolize=0");
            command
        };
        expect_silent(&mut command("ordinary"), way);
        let output = command("use_after_free").output().expect("the program can be run");
        assert!(
            !output.status.success() && text(&output).contains("heap-use-after-free"),
            "{way:?}: {}",
            text(&output)
        );
    }
}

/// ThreadSanitizer starts after the constructors of preloaded libraries, and these may call none of the functions that it replaces.
#[test]
fn beside_thread_sanitizer_its_malloc_is_used() {
    let flags = ["-fsanitize=thread", "-static-libtsan"];
    if !can_compile(&flags) {
        println!("skipped: the compiler has no ThreadSanitizer");
        return;
    }
    let program = Program::with_flags("seams_tsan.c", Way::Preload, &flags);
    // Some kernels place programs where the sanitizer does not look for them: then it refuses to start.
    let plain = Program::with_flags("seams_tsan.c", Way::System, &flags);
    if !plain.command().arg("ordinary").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: ThreadSanitizer does not run here");
        return;
    }
    expect_silent(program.command().arg("ordinary"), Way::Preload);
    let output = program.command().arg("race").env("TSAN_OPTIONS", "symbolize=0").output();
    let output = output.expect("the program can be run");
    assert!(!output.status.success() && text(&output).contains("data race"), "{}", text(&output));
}
