//! The command line of `cargo xtask`.

use crate::{dist, install, interpreted, mutants, repeat};
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
    /// Run everything that must pass, in minutes; stop at the first failure.
    Test {
        /// Run only this step.
        #[arg(long, value_name = "STEP")]
        only: Option<String>,
        /// List the steps.
        #[arg(long)]
        list: bool,
    },
    /// Count the instructions of the hot paths, and compare them with hotpath.golden.
    Hotpath {
        /// Write hotpath.golden from what was counted.
        #[arg(long)]
        bless: bool,
    },
    /// Count the instructions of twelve workloads, and compare them with counts.golden.
    Count {
        /// Write counts.golden from what was counted.
        #[arg(long)]
        bless: bool,
    },
    /// Find the longest path through TLSF's allocate and deallocate in their machine code.
    TlsfBound {
        /// Also execute this many random calls in single steps and count them: a sample, since 10000000 take hours.
        #[arg(long, default_value_t = 20_000)]
        operations: usize,
    },
    /// Run every sequence of TLSF operations of one length on the smallest heaps, and check the heap after each operation.
    TlsfSequences {
        /// The length; each additional operation takes about thirty times as long.
        #[arg(long, default_value_t = 6)]
        length: u32,
    },
    /// List every dependency between files that is part of a circle.
    Circles,
    /// Write docs/tuning.md from the option table.
    Tuning,
    /// Build libfreestone_tlsf.a and libfreestone_pool.a, for programs without a C library or an operating system.
    Archives {
        /// What they are for, as rustup names it: this machine by default.
        #[arg(long)]
        target: Option<String>,
        /// Where they are written: by default the target's folder of cargo.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Install libraries, headers, pkg-config and CMake files, manual, completions, documents and command.
    Install(install::Options),
    /// Pack what is installed: a tarball that runs where it is unpacked, Debian packages, and the source archive.
    Dist(dist::Options),
    /// Check that crates, Go module and packages can be released, and print the commands that release them; publishes nothing.
    Release,
    /// Run the loom models of every crate that has some.
    Loom,
    /// Weaken each atomic ordering in turn, and list those whose weakening no loom model notices; resumes where it stopped.
    Orderings {
        /// Only those of this crate: base, pool or freestone.
        package: Option<String>,
        /// Stop after this many seconds.
        #[arg(long)]
        seconds: Option<u64>,
        /// Try only every N-th one, starting at the K-th: K/N.
        #[arg(long, value_name = "K/N", default_value = "0/1", value_parser = shard)]
        shard: (usize, usize),
    },
    /// Run the model of the whole heap under schedules.
    Shuttle {
        /// Seconds for each of its tests.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Play only this seed.
        #[arg(long)]
        seed: Option<u64>,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Reintroduce faults that the heap once had, and check that the model finds them.
        #[arg(long)]
        put_back: bool,
    },
    /// Run every test without system calls under Miri, one at a time; resumes where it stopped.
    Miri {
        #[command(flatten)]
        chosen: interpreted::Chosen,
    },
    /// Change the allocators line by line, and list the changes that no test notices; resumes where it stopped.
    Mutants {
        #[command(flatten)]
        chosen: mutants::Chosen,
    },
    /// Run test programs again and again beside busy processes.
    Repeat {
        #[command(flatten)]
        chosen: repeat::Chosen,
    },
    /// Run the tests that use threads under ThreadSanitizer.
    Tsan,
    /// Test the seams between process, threads, libraries and kernel.
    Seams {
        /// The long form: a million forks, a hundred thousand threads.
        #[arg(long)]
        long: bool,
        /// Also change settings of the machine (overcommit, huge pages) while a test needs them; as root.
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
    /// Make each call of the operating system fail in turn.
    Faults {
        /// Ten times as many streams.
        #[arg(long)]
        long: bool,
    },
    /// Run the tests for other platforms: AArch64 (with OS pages of 4, 16 and 64 KiB) and RISC-V under qemu, musl, Windows under wine, WebAssembly under node.
    Platforms {
        /// Run only these targets.
        targets: Vec<String>,
    },
    /// Run TLSF and a pool on two emulated microcontrollers, a Cortex-M0 and a Cortex-M4, and print their longest calls in instructions.
    Embedded,
    /// Commit every heap crime of the suite at each level of hardening, and compare the table with docs/security.md.
    Crimes {
        /// Print the table of this allocator instead, as [NAME=]LIBRARY[,VARIABLE=VALUE]…; `system` is the C library's.
        #[arg(long)]
        under: Vec<String>,
        /// Write what was seen into docs/security.md.
        #[arg(long, conflicts_with = "under")]
        bless: bool,
    },
    /// Run correct programs at each level of hardening: the C tests, and real programs under preload.
    Alarms {
        /// Only at these levels: off, default, checks, full.
        #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
        harden: Vec<String>,
        /// Run the workloads of the lab too.
        #[arg(long)]
        workloads: bool,
    },
    /// Start a program many times, and print how many bits of the heap's addresses are random.
    Entropy {
        /// Starts; 100000 take some minutes.
        #[arg(long, default_value_t = 2000)]
        starts: u32,
        /// At this level of hardening.
        #[arg(long)]
        harden: Option<String>,
        /// Of this allocator, not of Freestone.
        #[arg(long, value_name = "LIBRARY")]
        of: Option<PathBuf>,
    },
    /// Run real programs with the library preloaded, and compare their output with that under the system allocator.
    Programs {
        /// Install missing programs with apt.
        #[arg(long)]
        install: bool,
        /// Run them at these levels of hardening: off, default, checks, full.
        #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
        harden: Vec<String>,
        /// Run only these.
        names: Vec<String>,
    },
}

/// Reads `K/N`.
pub(crate) fn shard(text: &str) -> Result<(usize, usize), String> {
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
