//! Development commands of Freestone: `cargo xtask --help` lists them.

mod hotpath;
mod install;
mod layers;
mod programs;
mod run;
mod test;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "Development commands of Freestone")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass, in minutes
    Test {
        /// Only this step
        #[arg(long, value_name = "STEP")]
        only: Option<String>,
    },
    /// Instruction counts of the hot paths against hotpath.golden
    Hotpath {
        /// Write the golden file anew instead of comparing
        #[arg(long)]
        bless: bool,
    },
    /// Build the release library and install it
    Install {
        /// Where it will live
        #[arg(long)]
        prefix: PathBuf,
        /// Put in front of the prefix while copying, for packagers
        #[arg(long)]
        destdir: Option<PathBuf>,
    },
    /// Loom models of base and pool
    Loom,
    /// Miri over base, tlsf, pool and the heap on the fake kernel (needs the nightly toolchain)
    Miri,
    /// Real programs under preload: output equal to the system allocator's, and proof that the library was there
    Programs,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Test { only } => test::run(only.as_deref()),
        Command::Hotpath { bless } => hotpath::run(bless),
        Command::Install { prefix, destdir } => install::run(&prefix, destdir.as_deref()),
        Command::Loom => test::loom(),
        Command::Miri => test::miri(),
        Command::Programs => programs::run(),
    }
}
