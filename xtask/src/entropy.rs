//! `cargo xtask entropy`: how well an attacker can guess where the heap is.
//!
//! Starts a program many times, which prints where its blocks and the allocator's other mappings are (`crates/capi/tests/c/addresses.c`), and
//! counts how often each bit of each address is set. The entropy of an address is the sum of that of its bits. The sum is too high if bits
//! depend on each other; equal addresses show that: n starts have about n² / 2^(bits + 1) pairs of them. Distances from the small block to
//! the others show what is known of these once a block's address has leaked.

use crate::process::{build_library, output, root, run as run_command, target};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Bits of an address that a process may use.
const BITS: usize = 47;

/// What was seen of one address.
struct Seen {
    /// How often each bit was set.
    ones: Vec<u32>,
    /// How often each address was seen.
    values: HashMap<u64, u32>,
    n: u32,
}

impl Seen {
    fn new() -> Self {
        Self { ones: vec![0; BITS], values: HashMap::new(), n: 0 }
    }

    fn add(&mut self, address: u64) {
        for (bit, ones) in self.ones.iter_mut().enumerate() {
            *ones += u32::from(address >> bit & 1 == 1);
        }
        *self.values.entry(address).or_default() += 1;
        self.n += 1;
    }

    /// The entropy of each bit, the highest first.
    fn by_bit(&self) -> impl Iterator<Item = f64> {
        self.ones.iter().rev().map(|&ones| entropy(f64::from(ones) / f64::from(self.n)))
    }

    /// Pairs of starts with the same address.
    fn pairs(&self) -> u64 {
        self.values.values().map(|&n| u64::from(n) * u64::from(n - 1) / 2).sum()
    }

    /// The entropy that follows from this many pairs; at least that if there are none.
    fn bits_by_pairs(&self) -> f64 {
        let n = f64::from(self.n);
        // The counts are far below 2^52.
        (n * (n - 1.0) / 2.0 / self.pairs().max(1) as f64).log2()
    }
}

/// The entropy of a bit that is set with probability `p`.
fn entropy(p: f64) -> f64 {
    [p, 1.0 - p].iter().filter(|p| **p > 0.0).map(|p| -p * p.log2()).sum()
}

/// Compiles the program.
fn compile() -> Result<PathBuf> {
    let program = target().join("entropy");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o"]).arg(&program).arg(root().join("crates/capi/tests/c/addresses.c")).arg("-ldl");
    run_command(&mut compile)?;
    Ok(program)
}

/// The addresses that one start printed, and the distances of the others from the small block.
fn addresses(text: &str) -> Result<Vec<(String, u64)>> {
    let mut addresses = Vec::new();
    for line in text.lines() {
        let (name, address) = line.split_once(' ').with_context(|| format!("`{line}` is no name with an address"))?;
        addresses.push((name.to_owned(), u64::from_str_radix(address, 16)?));
    }
    let Some(&(_, small)) = addresses.iter().find(|(name, _)| name == "small") else { bail!("no small block") };
    let others = addresses.iter().filter(|(name, _)| name != "small");
    let distances: Vec<_> =
        others.map(|(name, address)| (format!("{name} - small"), address.wrapping_sub(small))).collect();
    addresses.extend(distances);
    Ok(addresses)
}

fn start_often(program: &Path, library: &Path, level: Option<&str>, starts: u32) -> Result<Vec<Vec<(String, u64)>>> {
    let once = |_| {
        let mut command = Command::new(program);
        command.arg(library).envs(level.map(|level| ("FREESTONE_HARDEN", level)));
        addresses(&output(&mut command)?)
    };
    (0..starts).map(once).collect()
}

/// Starts the program this often, in two threads, and prints a table.
pub(crate) fn run(starts: u32, level: Option<&str>, library: Option<&Path>) -> Result<()> {
    let program = compile()?;
    let library = match library {
        Some(library) => std::path::absolute(library)?,
        None => {
            build_library()?;
            target().join("release/libfreestone.so")
        }
    };
    let halves = thread::scope(|scope| {
        let threads = [starts / 2, starts - starts / 2].map(|n| {
            let (program, library) = (&program, &library);
            scope.spawn(move || start_often(program, library, level, n))
        });
        threads.map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread failed")))
    });
    let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
    for half in halves {
        for (name, address) in half?.into_iter().flatten() {
            seen.entry(name).or_insert_with(Seen::new).add(address);
        }
    }
    print!("{}", table(&seen));
    Ok(())
}

fn table(seen: &BTreeMap<String, Seen>) -> String {
    let mut table = String::from(
        "| address | starts | bits | equal pairs | bits by these | bit 46 to bit 0, in tenths |\n|---|---|---|---|---|---|\n",
    );
    for (name, seen) in seen {
        let by_bit: Vec<f64> = seen.by_bit().collect();
        // One digit a bit: 9 stands for all above nine tenths.
        let digits: String = by_bit.iter().map(|bit| char::from(b'0' + (bit * 10.0).min(9.0) as u8)).collect();
        let at_least = if seen.pairs() == 0 { "at least " } else { "" };
        table += &format!(
            "| {name} | {} | {:.1} | {} | {at_least}{:.1} | {digits} |\n",
            seen.n,
            by_bit.iter().fold(0.0, |sum, bit| sum + bit),
            seen.pairs(),
            seen.bits_by_pairs(),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_bit_has_one_bit_of_entropy_and_a_constant_one_none() {
        assert_eq!([entropy(0.5), entropy(0.0), entropy(1.0)], [1.0, 0.0, 0.0]);
    }

    #[test]
    fn eight_addresses_that_are_as_likely_have_three_bits() {
        let mut seen = Seen::new();
        (0..8 * 64).for_each(|start| seen.add((start % 8) << 16));
        assert!((seen.by_bit().sum::<f64>() - 3.0).abs() < 1e-9);
        assert!((seen.bits_by_pairs() - 3.0).abs() < 0.1);
        assert_eq!(
            seen.by_bit().enumerate().filter(|(_, bit)| *bit > 0.0).map(|(at, _)| BITS - 1 - at).collect::<Vec<_>>(),
            [18, 17, 16]
        );
    }

    #[test]
    fn bits_that_depend_on_each_other_show_as_equal_pairs() {
        let mut seen = Seen::new();
        (0..64).for_each(|start| seen.add(if start % 2 == 0 { 0 } else { u64::MAX }));
        assert!(seen.by_bit().sum::<f64>() > 40.0);
        assert!(seen.bits_by_pairs() < 1.1);
    }

    #[test]
    fn what_the_program_prints_becomes_addresses_and_distances() {
        let all = addresses("small 10000\nlarge 30000\n").unwrap();
        assert_eq!(all, [("small".into(), 0x10000), ("large".into(), 0x30000), ("large - small".into(), 0x20000)]);
        assert!(addresses("large 30000\n").is_err());
    }
}
