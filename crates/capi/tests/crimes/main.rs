//! What the library does about heap crimes and attacks: the programs of `tests/c/crimes` and `tests/c/attacks`, each run at each level of the
//! option `harden`, at `full` with the checked memory functions.
//!
//! The expectation is the tables in `docs/security.md`: a test fails if a cell is not what was seen, for the worse or for the better.
//! `cargo xtask crimes --bless` writes what was seen into the page; `cargo xtask crimes --under LIBRARY` prints the tables of any allocator.
//!
//! How the number 113 comes about: five double frees, seven invalid frees, a size that is impossible, execution, reuse, two reads and three
//! writes of memory that was freed, six overflows, six underflows and five mismatches are 37 crimes, each committed with blocks of 8,
//! 4096 and 262144 bytes. Reading and writing a block of no bytes are two more programs. The crimes beside these are not counted: overflow
//! and underflow of 8 bytes, for the page, and the overflow of a field, which no allocator can see.

#[path = "../harness/mod.rs"]
mod harness;
mod page;
mod run;

use harness::{foreign_target, installed, preload_value, shared_library};
use run::{Allocator, Suite, Table, Verdict};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// The levels of `harden`, with how many of the 113 crimes each has to catch at least.
const LEVELS: [(&str, usize); 4] = [("off", 47), ("default", 68), ("checks", 107), ("full", 112)];

/// Whether large blocks have guards here at the level `default`: the kernel has markers for them, and gives no huge pages unasked.
fn has_guards() -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 13) && !read("/sys/kernel/mm/transparent_hugepage/enabled").contains("[always]")
}

/// A suite at every level; `None` where programs are for another machine, there is no compiler for C++, or the kernel has no guards, which the page
/// reckons with.
fn at_each_level(suite: Suite) -> Option<&'static Table> {
    static CRIMES: OnceLock<Table> = OnceLock::new();
    static ATTACKS: OnceLock<Table> = OnceLock::new();
    if foreign_target().is_some() || !installed("c++") {
        println!("skipped: the crimes are committed on the machine that they are compiled on");
        return None;
    }
    if !has_guards() {
        println!("skipped: guards need Linux 6.13, and transparent huge pages on `madvise` or `never`");
        return None;
    }
    let table = match suite {
        Suite::Crimes => &CRIMES,
        Suite::Attacks => &ATTACKS,
    };
    Some(table.get_or_init(|| {
        let levels = LEVELS.map(|(level, _)| Allocator {
            name: level.into(),
            preload: Some(preload_value(level == "full")),
            variables: vec![("FREESTONE_HARDEN".into(), level.into())],
        });
        run::commit_all(suite, levels.into())
    }))
}

#[test]
fn each_level_does_about_each_crime_what_the_page_says() {
    let Some(table) = at_each_level(Suite::Crimes) else { return };
    page::compare(table);
}

#[test]
fn each_level_does_about_each_attack_what_the_page_says() {
    let Some(table) = at_each_level(Suite::Attacks) else { return };
    page::compare(table);
}

#[test]
fn each_level_catches_as_many_as_it_has_to() {
    let Some(table) = at_each_level(Suite::Crimes) else { return };
    for (column, (level, least)) in LEVELS.into_iter().enumerate() {
        let caught = table.n_caught(column);
        assert!(caught >= least, "harden={level} catches {caught} of the programs, and has to catch {least}");
    }
}

#[test]
fn the_programs_that_can_be_caught_are_113() {
    let Some(table) = at_each_level(Suite::Crimes) else { return };
    assert_eq!(table.n_counted(), 113);
}

/// A program that the library ends has to be told why.
#[test]
fn no_program_is_aborted_without_a_report() {
    for suite in [Suite::Crimes, Suite::Attacks] {
        let Some(table) = at_each_level(suite) else { return };
        assert_eq!(table.aborted_silently, Vec::<String>::new());
    }
}

#[test]
fn an_overflow_inside_a_block_is_no_affair_of_the_allocator() {
    let Some(table) = at_each_level(Suite::Crimes) else { return };
    let row = table.row("overflow_of_a_field").expect("the program has this crime");
    assert!(row.verdicts.iter().flatten().all(|verdict| *verdict == Verdict::Missed));
}

/// Otherwise a misspelt level would pass for the default one.
#[test]
fn a_program_that_is_not_at_the_level_asked_for_says_so() {
    let Some(_) = at_each_level(Suite::Crimes) else { return };
    let mut command = Command::new(harness::scratch("programs").join("crimes"));
    command.args(["reuse", "8"]).env("LD_PRELOAD", shared_library()).env("FREESTONE_HARDEN", "very");
    let output = command.output().expect("the program can be run");
    assert_eq!(output.status.code(), Some(3), "{}", harness::text(&output));
}

/// For `cargo xtask crimes --under`: prints the table of the allocators in `CRIMES_UNDER`, each `NAME=LIBRARY,VARIABLE=VALUE,…`, between
/// semicolons. Without a library it is the C library's.
#[test]
#[ignore = "prints a table of other allocators: cargo xtask crimes --under LIBRARY"]
fn the_table_of_other_allocators() {
    let under = env::var("CRIMES_UNDER").unwrap_or_else(|_| "system=".into());
    let allocators: Vec<_> = under.split(';').map(Allocator::parse).collect();
    for suite in [Suite::Crimes, Suite::Attacks] {
        println!("{}", page::table(&run::commit_all(suite, allocators.clone())));
    }
}
