//! `cargo xtask mutants`: changes the allocators line by line, and lists the changes that no test notices.
//!
//! cargo-mutants (`cargo install cargo-mutants --locked`) makes the changes and runs the tests of the changed crate, as `.cargo/mutants.toml`
//! configures. It gets some mutants at a time, and the verdict on each is recorded ([`Ledger`]), so the command can be stopped at any
//! time, or after `--minutes`, and resumes where it was. A changed file is tested again; `--again` tests the survivors again, after tests were added.
//!
//! cargo-mutants changes no function that is declared `unsafe`.

use crate::ledger::{Ledger, fingerprint};
use crate::process::{command, is_installed, output, root, target};
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Some files of a package, and the tests that have to notice changes to them.
struct Module {
    name: &'static str,
    package: &'static str,
    /// Globs, as cargo-mutants takes them.
    files: &'static [&'static str],
    /// Arguments that narrow `cargo test`, so that one mutant takes seconds.
    tests: &'static [&'static str],
}

/// Unit tests of the crate test the heap's modules below `api`; C programs test `api`, which takes a minute per mutant.
const MODULES: [Module; 8] = [
    Module { name: "base", package: "freestone-base", files: &["crates/base/src/**"], tests: &["--tests"] },
    Module { name: "tlsf", package: "freestone-tlsf", files: &["crates/tlsf/src/**"], tests: &["--tests"] },
    Module { name: "pool", package: "freestone-pool", files: &["crates/pool/src/**"], tests: &["--tests"] },
    Module {
        name: "span",
        package: "freestone",
        files: &["crates/freestone/src/span.rs", "crates/freestone/src/span/**"],
        tests: &["--lib"],
    },
    Module {
        name: "page",
        package: "freestone",
        files: &["crates/freestone/src/page.rs", "crates/freestone/src/page/**"],
        tests: &["--lib"],
    },
    Module {
        name: "thread",
        package: "freestone",
        files: &["crates/freestone/src/thread.rs", "crates/freestone/src/thread/**"],
        tests: &["--lib"],
    },
    Module {
        name: "central",
        package: "freestone",
        files: &["crates/freestone/src/central.rs", "crates/freestone/src/central/**", "crates/freestone/src/usage.rs"],
        tests: &["--lib"],
    },
    Module {
        name: "api",
        package: "freestone",
        files: &["crates/freestone/src/api.rs", "crates/freestone/src/api/**"],
        tests: &["--test", "life_cycle", "--test", "memory", "--test", "options", "--test", "conformance"],
    },
];

/// Mutants that cargo-mutants gets at once. Each time it first copies the tree and runs the unchanged tests.
const AT_ONCE: usize = 40;

/// The files in which cargo-mutants lists its findings, with our verdicts. A mutant that makes a test run forever is caught.
const FINDINGS: [(&str, &str); 4] =
    [("caught.txt", "caught"), ("timeout.txt", "caught"), ("missed.txt", "missed"), ("unviable.txt", "unviable")];

/// The arguments.
#[derive(clap::Args)]
pub(crate) struct Chosen {
    /// Only these: base, tlsf, pool, span, page, thread, central, api.
    modules: Vec<String>,
    /// Start no more mutants after this many minutes.
    #[arg(long, default_value_t = u64::MAX / 60)]
    minutes: u64,
    /// Test the survivors again.
    #[arg(long)]
    again: bool,
    /// Only print the verdicts.
    #[arg(long)]
    report: bool,
}

/// Tests mutants until all have a verdict or the time is over, and prints the verdicts.
pub(crate) fn run(chosen: &Chosen) -> Result<()> {
    if !is_installed("cargo-mutants") {
        bail!("mutation testing needs cargo-mutants: `cargo install cargo-mutants --locked`");
    }
    if let Some(unknown) = chosen.modules.iter().find(|name| MODULES.iter().all(|module| module.name != **name)) {
        bail!("no module is called {unknown}; known are: {}", MODULES.map(|module| module.name).join(", "));
    }
    let modules = || MODULES.iter().filter(|module| chosen.modules.is_empty() || is_named(&chosen.modules, module));
    let mut ledger = Ledger::open("mutants")?;
    let end = Instant::now().checked_add(Duration::from_secs(chosen.minutes.saturating_mul(60)));
    if !chosen.report {
        for module in modules() {
            test(module, chosen.again, end, &mut ledger)?;
        }
    }
    modules().try_for_each(|module| report(module, &ledger))
}

fn is_named(names: &[String], module: &Module) -> bool {
    names.iter().any(|name| name == module.name)
}

/// A mutant.
struct Mutant {
    /// Its name as cargo-mutants lists it: `file:line:column: change`.
    name: String,
    /// Its name in the ledger: `file: change #n`, the n-th of that change in the file, which stays when lines move.
    key: String,
    /// The fingerprint of its file.
    print: String,
}

impl Mutant {
    /// Its verdict.
    fn verdict<'a>(&self, ledger: &'a Ledger) -> Option<&'a str> {
        ledger.verdict(&self.print, &self.key)
    }
}

fn mutants(module: &Module) -> Result<Vec<Mutant>> {
    let globs = module.files.iter().flat_map(|glob| ["--file", glob]);
    let arguments: Vec<_> = ["mutants", "--list", "--package", module.package].into_iter().chain(globs).collect();
    let listed = output(&mut command("cargo", &arguments))?;
    let (mut prints, mut counts) = (BTreeMap::new(), BTreeMap::new());
    let mut mutants = Vec::new();
    for name in listed.lines() {
        let file = name.split(':').next().unwrap_or(name);
        if !prints.contains_key(file) {
            prints.insert(file.to_owned(), fingerprint(&[root().join(file)])?);
        }
        let change = name.splitn(4, ':').nth(3).unwrap_or(name);
        let count = counts.entry((file, change)).or_insert(0);
        *count += 1;
        let key = format!("{file}:{change} #{count}");
        mutants.push(Mutant { name: name.to_owned(), key, print: prints.get(file).cloned().unwrap_or_default() });
    }
    Ok(mutants)
}

fn test(module: &Module, again: bool, end: Option<Instant>, ledger: &mut Ledger) -> Result<()> {
    let mutants = mutants(module)?;
    let left: Vec<_> = mutants
        .iter()
        .filter(|mutant| mutant.verdict(ledger).is_none_or(|verdict| again && verdict == "missed"))
        .collect();
    println!("== mutants: {}, {} of {} to test", module.name, left.len(), mutants.len());
    for some in left.chunks(AT_ONCE) {
        if end.is_some_and(|end| Instant::now() >= end) {
            println!("the time is over; the same command goes on from here");
            return Ok(());
        }
        let folder = target().join("proofs/mutants-run");
        let names = some.iter().map(|mutant| escaped(&mutant.name)).collect::<Vec<_>>().join("|");
        let mut cargo = command("cargo", &["mutants", "--package", module.package, "--no-times", "--colors", "never"]);
        cargo.args(["--re", &format!("^(?:{names})$"), "--output"]).arg(&folder);
        cargo.args(module.files.iter().flat_map(|glob| ["--file", glob]));
        if module.name == "api" {
            cargo.args(["--test-package", "freestone-capi"]);
        }
        cargo.arg("--").args(module.tests).env("CARGO_TARGET_DIR", target().join("mutants"));
        // Its exit status says whether mutants survived; the verdicts are in its files.
        cargo.status()?;
        let n_seen = take_over(&folder.join("mutants.out"), some, ledger)?;
        if n_seen == 0 {
            bail!("cargo-mutants tested nothing: do the tests of {} pass? {}", module.package, folder.display());
        }
    }
    Ok(())
}

/// Records what cargo-mutants found. Returns the number of verdicts.
fn take_over(folder: &Path, tested: &[&Mutant], ledger: &mut Ledger) -> Result<usize> {
    let mut n_seen = 0;
    for (file, verdict) in FINDINGS {
        let names = fs::read_to_string(folder.join(file)).unwrap_or_default();
        for name in names.lines() {
            if let Some(mutant) = tested.iter().find(|tested| tested.name == name) {
                ledger.write(&mutant.print, verdict, &mutant.key)?;
                n_seen += 1;
            }
        }
    }
    Ok(n_seen)
}

/// A name as a regular expression that matches just it.
fn escaped(name: &str) -> String {
    name.chars().flat_map(|c| r"\.+*?()|[]{}^$".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

fn report(module: &Module, ledger: &Ledger) -> Result<()> {
    let mutants = mutants(module)?;
    let of = |wanted: &str| -> Vec<&str> {
        let is_it = |mutant: &&Mutant| mutant.verdict(ledger) == Some(wanted);
        mutants.iter().filter(is_it).map(|mutant| mutant.name.as_str()).collect()
    };
    let (caught, missed, unviable) = (of("caught").len(), of("missed"), of("unviable").len());
    let viable = caught + missed.len();
    let left = mutants.len() - viable - unviable;
    let percent = 100.0 * caught as f64 / (viable.max(1) as f64);
    println!(
        "{}: {caught} caught, {} missed ({percent:.0} % of the viable caught), {unviable} unviable, {left} left",
        module.name,
        missed.len()
    );
    missed.iter().for_each(|name| println!("    {name}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_its_files() {
        for glob in MODULES.iter().flat_map(|module| module.files) {
            let path = root().join(glob.trim_end_matches("/**"));
            // A folder may be absent: a module without submodules is one file.
            assert!(path.exists() || path.with_extension("rs").is_file(), "{glob} matches nothing");
        }
    }
}
