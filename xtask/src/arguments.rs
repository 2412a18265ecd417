//! The command line of `cargo xtask`.

use crate::{interpreted, mutants};
use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;

/// Development commands of the Freestone workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
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
    /// List every arrow between files that lies on a circle.
    Circles,
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
    /// Weaken every atomic ordering in turn, and list those that no loom model minds; goes on where it stopped.
    Orderings {
        /// Just those of this crate: base, pool or freestone.
        package: Option<String>,
        /// Stop after so many seconds.
        #[arg(long)]
        seconds: Option<u64>,
        /// Try one in N, the K-th: K/N.
        #[arg(long, value_name = "K/N", default_value = "0/1", value_parser = shard)]
        shard: (usize, usize),
    },
    /// The model of the whole heap under schedules.
    Shuttle {
        /// Seconds for each of its tests.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Play just this seed.
        #[arg(long)]
        seed: Option<u64>,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Put faults back that were in the heap once, and see whether the model finds them.
        #[arg(long)]
        put_back: bool,
    },
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

/// Reads `K/N`.
fn shard(text: &str) -> Result<(usize, usize), String> {
    let (k, n) = text.split_once('/').ok_or("write K/N")?;
    match (k.parse(), n.parse()) {
        (Ok(k), Ok(n)) if k < n => Ok((k, n)),
        _ => Err("write K/N, with K below N".into()),
    }
}

/// Whether `cargo xtask` has a command of this name.
pub(crate) fn is_subcommand(name: &str) -> bool {
    Arguments::command().find_subcommand(name).is_some()
}
