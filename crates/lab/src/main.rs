//! The `freestone` command: your program under every allocator, measured.
//!
//! | module | owns |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`run`], [`compare`], [`mod@bench`], [`experiment`], [`report`], [`options`], [`peers`] | one command each |
//! | [`demo`] | the program `freestone run` shows by itself |
//! | [`workload`] | the built-in workloads and their process |
//! | [`allocator`], [`executable`], [`checkout`] | what can be preloaded, and where it is |
//! | [`command`], [`server`], [`child`], [`launch`], [`interrupt`] | running something to its end, and what the kernel counted |
//! | [`exit_report`], [`timeline`] | what the library said at exit; memory over time |
//! | [`order`] | who runs when within a round |
//! | [`measure`], [`results`], [`record`] | what was measured, kept on disk as it comes |
//! | [`summary`], [`statistics`], [`standing`] | medians, ratios, what may be claimed; who leads, and where Freestone does not |
//! | [`machine`], [`warning`] | where, and reasons for doubt |
//! | [`table`], [`plot`], [`quantity`], [`progress`], [`names`] | how it is said |

mod allocator;
mod bench;
mod checkout;
mod child;
mod cli;
mod command;
mod compare;
mod demo;
mod executable;
mod exit_report;
mod experiment;
mod interrupt;
mod launch;
mod machine;
mod measure;
mod names;
mod options;
mod order;
mod peers;
mod plot;
mod progress;
mod quantity;
mod record;
mod report;
mod results;
mod run;
mod server;
mod standing;
mod statistics;
mod summary;
mod table;
mod timeline;
mod warning;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The processes the lab starts for itself are recognised before anything else is done: they are what is measured.
    match args.first().and_then(|arg| arg.to_str()) {
        Some("workload") => return workload::entry::main(&strings(&args[1..])),
        Some("launch") => return launch::main(&args[1..]),
        Some(demo::SUBCOMMAND) => return demo::program::main(),
        _ => {}
    }
    match cli::main() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("freestone: {error:#}");
            ExitCode::from(cli::status_of(&error))
        }
    }
}

fn strings(args: &[OsString]) -> Vec<String> {
    args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
}
