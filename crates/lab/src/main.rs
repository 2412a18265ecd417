//! The `freestone` command: your program under every allocator, measured.

mod names;
mod record;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("workload") => workload::entry::main(&args[1..]),
        _ => ExitCode::from(2),
    }
}
