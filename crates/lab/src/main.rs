//! The `freestone` command: runs a program or a workload under several memory allocators and compares them.
//!
//! A module names only modules below it; `layers.dag` holds the order and `cargo xtask test --only layers` checks it.
//!
//! | module | owns |
//! |---|---|
//! | [`command`] | the command line; one file per subcommand |
//! | [`heap_profile`] | heap profiles: reading them, tables, flame graphs, pages |
//! | [`leaks`] | leaks: holding a process at its end, and marking what its memory refers to |
//! | [`show`] | tables, plots and HTML pages, made from results |
//! | [`measure`] | rounds, statistics, comparisons, reasons for doubt |
//! | [`symbols`] | functions and lines of code addresses |
//! | [`results`] | the results file: what it holds, writing and reading it |
//! | [`allocator`] | allocators: finding them, building them, proving that they answer `malloc` |
//! | [`program_suite`] | real programs with generated inputs |
//! | [`process`] | child processes: starting, watching and ending them |
//! | [`workload`] | the built-in workloads and the process each of them runs in |
//! | [`trace`] | traces of programs: reading them, putting them in order |
//! | [`printing`], [`progress`], [`suggestion`] | what is printed; progress bars; messages about unknown names |
//! | [`scratch_file`] | temporary files and folders |

// First: its macros take the place of the standard library's in all modules below it.
#[macro_use]
mod printing;

mod allocator;
mod command;
mod file_pattern;
mod heap_profile;
mod leaks;
mod measure;
mod process;
mod program_suite;
mod progress;
mod results;
mod scratch_file;
mod show;
mod suggestion;
mod symbols;
mod trace;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    printing::status(run())
}

fn run() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The lab starts itself as a child for these. They are recognised before the command line is parsed, so that the measured
    // process does as little work of its own as possible.
    match args.first().and_then(|arg| arg.to_str()) {
        Some("workload") => return workload::entry::main(&strings(&args[1..])),
        Some("plan") => return workload::replay::plan_main(&strings(&args[1..])),
        Some("launch") => return process::launcher::main(&args[1..]),
        Some(workload::demo_program::SUBCOMMAND) => return workload::demo_program::main(),
        _ => {}
    }
    match command::main() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("freestone: {error:#}");
            ExitCode::from(command::status_of(&error))
        }
    }
}

fn strings(args: &[OsString]) -> Vec<String> {
    args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
}
