//! Limits of address space and of data, small ones too, set at any time: programs can allocate as much as from the system's allocator.

mod harness;

use harness::{Program, Way, emulated, expect_silent};
use std::process::Command;

/// The numbers that `limits.c` prints, or nothing if it reports that an allocation was refused.
fn numbers(command: &mut Command, way: Way) -> Vec<u64> {
    let said = expect_silent(command, way);
    let parse = |line: &str| line.split_once(' ').and_then(|(_, number)| number.parse().ok());
    said.lines().filter(|line| !line.starts_with("refused")).map(|line| parse(line).expect("a number")).collect()
}

/// `limits.c` with the system's allocator, and with Freestone.
struct Pair([(Program, Way); 2]);

impl Pair {
    fn new() -> Self {
        Self([Way::System, Way::Preload].map(|way| (Program::new("limits.c", way), way)))
    }

    /// The output of one part of it.
    fn run(&self, setup: &str, arguments: &str) -> [Vec<u64>; 2] {
        self.0.each_ref().map(|(program, way)| numbers(&mut program.command_after(setup, arguments), *way))
    }
}

const WHY: &str = "the limit is the emulator's as well";

/// At the least 95 % of what glibc hands out in pieces of 64 KiB, and 90 % in larger or smaller ones.
#[test]
fn under_a_small_limit_as_much_can_be_allocated_as_from_the_systems_allocator() {
    if emulated(WHY) {
        return;
    }
    let pair = Pair::new();
    for mib in [16, 32, 64, 96, 128, 256] {
        for limit in ["-v", "-d"] {
            for (piece, percent) in [(65536, 95), (64, 90), (3000, 90)] {
                let [system, ours] = pair.run(&format!("ulimit {limit} {}", mib << 10), &format!("fill {piece}"));
                let ours_percent = ours[0] * 100 / system[0];
                println!("ulimit {limit} {mib} MiB, pieces of {piece}: {ours:?} of {system:?} bytes, {ours_percent} %");
                assert!(ours_percent >= percent, "{ours_percent} % of {system:?} with ulimit {limit} {mib} MiB");
            }
        }
    }
}

#[test]
fn under_a_limit_that_is_set_later_as_much_can_be_allocated_as_from_the_systems_allocator() {
    if emulated(WHY) {
        return;
    }
    let [system, ours] = Pair::new().run("true", "later");
    assert!(ours[0] * 100 >= system[0] * 95, "{ours:?} of {system:?} bytes");
}

#[test]
fn a_limit_that_is_raised_later_is_used() {
    if emulated(WHY) {
        return;
    }
    let pair = Pair::new();
    for mib in [16, 100] {
        let [system, ours] = pair.run(&format!("ulimit -S -v {}", mib << 10), "raised");
        assert!(ours[0] * 100 >= system[0] * 95, "{ours:?} of {system:?} bytes");
        assert_eq!(ours[1], 2 << 30);
    }
}

/// All that waits in a thread's inbox comes to its aid when memory is short, however much that is.
#[test]
fn what_another_thread_has_freed_is_used_again_where_there_is_nothing_else() {
    if emulated(WHY) {
        return;
    }
    let [system, ours] = Pair::new().run("true", "freed_by_another");
    println!("{ours:?} of {system:?} bytes");
    assert!(ours[0] * 100 >= system[0] * 90, "{ours:?} of {system:?} bytes");
}

#[test]
fn what_a_thread_frees_that_has_no_memory_of_its_own_is_used_again() {
    if emulated(WHY) {
        return;
    }
    let [system, ours] = Pair::new().run("true", "freed_without_memory");
    assert!(ours[0] * 100 >= system[0] * 90, "{ours:?} of {system:?} bytes");
}

/// Runs a part that locks all memory, after which at most so many KiB more are resident than with the system's allocator; nothing if the system refuses to lock.
fn with_all_memory_locked(part: &str, more: u64) {
    if emulated("what is resident is the emulator's") {
        return;
    }
    let [system, ours] = Pair::new().run("true", part);
    if let (Some(system), Some(ours)) = (system.first(), ours.first()) {
        println!("{ours} KiB resident, {system} with the system's allocator");
        assert!(*ours <= system + more, "{ours} KiB resident, {system} with the system's allocator");
    }
}

#[test]
fn locking_all_memory_makes_little_resident() {
    with_all_memory_locked("locked", 3 * 1024);
}

/// Memory that is locked goes back by being unmapped.
#[test]
fn what_a_program_frees_that_has_locked_all_memory_goes_back() {
    with_all_memory_locked("locked_and_freed", 12 * 1024);
}

/// Addresses of memory that has gone back are there for something else: of 100 to 400 MiB, of which the program has used 60.
#[test]
fn under_a_limit_of_addresses_as_many_threads_can_be_started_after_memory_was_freed_as_with_the_systems_allocator() {
    if emulated(WHY) {
        return;
    }
    let pair = Pair::new();
    for mib in [100, 200, 400] {
        for limit in ["-v", "-d"] {
            let [system, ours] = pair.run(&format!("ulimit {limit} {}", mib << 10), "threads_after");
            println!("ulimit {limit} {mib} MiB: {ours:?} threads, {system:?} with the system's allocator");
            assert!(ours[0] + 8 >= system[0], "ulimit {limit} {mib} MiB: {ours:?} threads of {system:?}");
        }
        let [system, ours] = pair.run(&format!("ulimit -v {}", mib << 10), "charge_after");
        assert!(ours[0] <= system[0] + 8 * 1024, "{ours:?} KiB, {system:?} with the system's allocator");
    }
}

/// What `vm.overcommit_memory=2` charges a small program.
#[test]
fn a_small_program_commits_at_most_2_mib_more_than_with_the_systems_allocator() {
    if emulated("what is mapped is the emulator's") {
        return;
    }
    let [system, ours] = Pair::new().run("true", "charge");
    assert!(ours[0] <= system[0] + 2 * 1024, "{ours:?} KiB, {system:?} with the system's allocator");
}

/// Each number with half of what it may vary to spare: where the system puts things in memory decides a few.
#[test]
fn a_small_program_touches_few_os_pages_more_than_with_the_systems_allocator() {
    if emulated("the faults are the emulator's as well") {
        return;
    }
    let pair = Pair::new();
    let [system, ours] = pair.0.each_ref().map(|(program, way)| numbers(program.command().arg("faults"), *way));
    for ((what, more), (system, ours)) in [("loaded", 16), ("after the first allocation", 32), ("with 400 blocks", 68)]
        .iter()
        .zip(system.iter().zip(&ours))
    {
        println!("page faults, {what}: {ours}, {system} with the system's allocator");
        assert!(*ours <= system + more, "{what}: {ours} page faults, {system} with the system's allocator");
    }
    assert_eq!((system.len(), ours.len()), (3, 3));
}
