//! Development commands of Freestone: `cargo xtask --help` lists them.

mod hotpath;
mod install;
mod interpreted;
mod lab;
mod layers;
mod ledger;
mod mutants;
mod platforms;
mod process;
mod programs;
mod proofs;
mod steps;
mod tlsf_bound;
mod tuning;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Development commands of the Freestone workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass, in minutes; stops at the first failure.
    Test {
        /// Run just this step.
        #[arg(long, value_name = "STEP")]
        only: Option<String>,
        /// List the steps.
        #[arg(long)]
        list: bool,
    },
    /// Count the instructions of the hot paths, and compare them with hotpath.golden.
    Hotpath {
        /// Write hotpath.golden anew.
        #[arg(long)]
        bless: bool,
    },
    /// The longest way through TLSF's allocate and deallocate, from their machine code.
    TlsfBound {
        /// Also count this many random calls, step by step: a sample, for 10000000 take hours.
        #[arg(long, default_value_t = 20_000)]
        operations: usize,
    },
    /// TLSF: every operation sequence of length 6 on the smallest heaps, checked after each operation.
    TlsfSequences {
        /// Length of the sequences: each step more takes about thirty times as long.
        #[arg(long, default_value_t = 6)]
        length: u32,
    },
    /// Write docs/tuning.md anew from the option table.
    Tuning,
    /// Install library, header, pkg-config and CMake files, man page and command.
    Install {
        /// Where the files will be used.
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
        /// Put in front of the prefix while copying, for packagers.
        #[arg(long)]
        destdir: Option<PathBuf>,
    },
    /// The loom models of every crate that has some.
    Loom,
    /// Miri, over every test of what has no system call in it, one at a time; goes on where it was.
    Miri {
        #[command(flatten)]
        chosen: interpreted::Chosen,
    },
    /// Mutation: which changes to the allocators no test minds; goes on where it was.
    Mutants {
        #[command(flatten)]
        chosen: mutants::Chosen,
    },
    /// ThreadSanitizer over the tests that have threads.
    Tsan,
    /// The seams between process, threads, libraries and kernel.
    Seams {
        /// A million forks, a hundred thousand threads.
        #[arg(long)]
        long: bool,
        /// Change settings of the machine (overcommit, huge pages) for as long as a test needs them; as root.
        #[arg(long)]
        machine: bool,
    },
    /// Fuzz one target, or each in turn.
    Fuzz {
        /// The target; all of them when left out.
        target: Option<String>,
        /// Seconds for each target.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Fault injection: the operating system's calls failed in turn.
    Faults {
        /// Ten times as many streams.
        #[arg(long)]
        long: bool,
    },
    /// The tests on other platforms: AArch64 under qemu with OS pages of 4, 16 and 64 KiB, and musl.
    Platforms {
        /// Run just these targets.
        targets: Vec<String>,
    },
    /// Real programs under preload, compared with the system allocator.
    Programs {
        /// Install with apt what is missing.
        #[arg(long)]
        install: bool,
        /// Run just these.
        names: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Test { only, list } => steps::test(only.as_deref(), list),
        Command::Hotpath { bless } => hotpath::run(bless),
        Command::TlsfBound { operations } => tlsf_bound::check(operations),
        Command::TlsfSequences { length } => proofs::tlsf_sequences(length),
        Command::Tuning => tuning::write(),
        Command::Install { prefix, destdir } => install::run(&prefix, destdir.as_deref()),
        Command::Loom => proofs::loom(),
        Command::Miri { chosen } => interpreted::miri(&chosen),
        Command::Mutants { chosen } => mutants::run(&chosen),
        Command::Tsan => proofs::tsan(),
        Command::Seams { long, machine } => proofs::seams(long, machine),
        Command::Fuzz { target, seconds } => proofs::fuzz(target.as_deref(), seconds),
        Command::Faults { long } => proofs::faults(long),
        Command::Platforms { targets } => platforms::test(&targets),
        Command::Programs { install, names } => programs::run(&names, install),
    }
}
