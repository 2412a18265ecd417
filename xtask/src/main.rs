//! The development commands of Freestone; `cargo xtask --help` lists them.

mod alarms;
mod archives;
mod arguments;
mod claims;
mod counts;
mod crimes;
mod dist;
mod embedded;
mod entropy;
mod guide;
mod hotpath;
mod install;
mod interpreted;
mod lab;
mod layers;
mod ledger;
mod mutants;
mod orderings;
mod platforms;
mod process;
mod programs;
mod proofs;
mod published;
mod release;
mod repeat;
#[cfg(test)]
mod samples;
mod schedules;
mod scratch;
mod sizes;
mod source;
mod steps;
mod test_programs;
mod tlsf_bound;
mod tuning;

use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser;

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Test { only, list } => steps::test(only.as_deref(), list),
        Command::Hotpath { bless } => hotpath::run(bless),
        Command::Count { bless } => counts::run(bless),
        Command::TlsfBound { operations } => tlsf_bound::check(operations),
        Command::TlsfSequences { length } => proofs::tlsf_sequences(length),
        Command::Circles => layers::list_circles(),
        Command::Tuning => tuning::write(),
        Command::Archives { target, out } => archives::build_all(target.as_deref(), out),
        Command::Install(options) => install::run(&options),
        Command::Dist(options) => dist::run(&options),
        Command::Release => release::run(),
        Command::Loom => proofs::loom(),
        Command::Miri { chosen } => interpreted::miri(&chosen),
        Command::Mutants { chosen } => mutants::run(&chosen),
        Command::Repeat { chosen } => repeat::run(&chosen),
        Command::Tsan => proofs::tsan(),
        Command::Seams { long, machine } => proofs::seams(long, machine),
        Command::Orderings { package, seconds, shard } => orderings::run(package.as_deref(), seconds, shard),
        Command::Shuttle { seconds, put_back: true, .. } => schedules::put_back(seconds),
        Command::Shuttle { seconds, seed, from, .. } => schedules::play(seconds, seed, from),
        Command::Fuzz { target, seconds } => proofs::fuzz(target.as_deref(), seconds),
        Command::Faults { long } => proofs::faults(long),
        Command::Platforms { targets } => platforms::test(&targets),
        Command::Embedded => embedded::test(),
        Command::Crimes { under, bless } => crimes::run(&under, bless),
        Command::Alarms { harden, workloads } => alarms::run(&harden, workloads),
        Command::Entropy { starts, harden, of } => entropy::run(starts, harden.as_deref(), of.as_deref()),
        Command::Programs { install, harden, names } => programs::run(&names, &harden, install),
    }
}
