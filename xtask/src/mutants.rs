//! `cargo xtask mutants`: changes the allocators line by line, and lists the changes that no test notices.
//!
//! cargo-mutants (`cargo install cargo-mutants --locked`) lists the changes. All that a crate can have are built into its test programs at once
//! ([`changed`]), and an environment variable puts one in force. A first run of each test tells which changes it reaches; then the tests that
//! reach a change run, the shortest first, until one fails. So a change that is noticed takes milliseconds.
//!
//! Each verdict is recorded ([`Ledger`]), so the command can be stopped at any time, or after `--minutes`, and resumes where it was. Changes of a
//! changed file are tested again; `--again` tests the survivors again, after tests were added.
//!
//! cargo-mutants changes no function that is declared `unsafe`, and nothing within macros.

mod changed;
mod modules;
mod programs;
mod trial;

use crate::ledger::{Ledger, fingerprint};
use crate::process::{command, is_installed, output, root, target};
use anyhow::{Result, bail};
use changed::Change;
use modules::{MODULES, Module, PACKAGES};
use programs::{Built, Placed};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use trial::{Ending, Test};

/// The arguments.
#[derive(clap::Args)]
pub(crate) struct Chosen {
    /// Only these: base, tlsf, pool, span, page, thread, central, guarded, profile, api.
    modules: Vec<String>,
    /// Only files whose path has this in it.
    #[arg(long)]
    file: Vec<String>,
    /// Start no more mutants after this many minutes.
    #[arg(long, default_value_t = u64::MAX / 60)]
    minutes: u64,
    /// Test the survivors again.
    #[arg(long)]
    again: bool,
    /// Leave out tests that take more seconds of processor time than this; some changes survive then that these would notice.
    #[arg(long, default_value_t = u64::MAX)]
    seconds: u64,
    /// Test this many mutants at once.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Also build and test each mutant of a constant, one at a time.
    #[arg(long)]
    constants: bool,
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
    for package in PACKAGES.iter().filter(|_| !chosen.report) {
        let some: Vec<_> = modules().filter(|module| module.package == package.0).collect();
        if !some.is_empty() {
            test(package, &some, chosen, end, &mut ledger)?;
        }
    }
    let _ = fs::remove_dir_all(programs::folder());
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
    /// What is built of it, under a number. Nothing if its change is of a kind that is not known.
    fn placed(&self, number: u32) -> Option<Placed> {
        let mut parts = self.name.splitn(4, ':');
        let (file, line, column) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let change = Change::of(parts.next()?.trim())?;
        Some(Placed { number, file: file.to_owned(), at: (line, column), change })
    }

    /// Whether its file is one of those whose path has one of these texts in it; all are if there are none.
    fn is_in(&self, files: &[String]) -> bool {
        let path = self.name.split(':').next().unwrap_or_default();
        files.is_empty() || files.iter().any(|file| path.contains(file))
    }

    /// Whether an operator changes in what the compiler computes: no function's name follows.
    fn is_constant(&self) -> bool {
        let change = self.name.splitn(4, ':').nth(3).and_then(|change| Change::of(change.trim()));
        matches!(change, Some(Change::Operator(_) | Change::NoOperator)) && !self.name.contains(" in ")
    }

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

/// A test, how many seconds of processor time it takes, and which places it reaches: a byte for each mutant's number.
struct Measured {
    test: Test,
    seconds: f64,
    reached: Vec<u8>,
}

impl Measured {
    /// Runs the test once with no mutant in force. Returns nothing if it fails. A test that takes much longer than `most` seconds is ended.
    fn new(test: &Test, n_numbers: usize, most: u64) -> Result<Option<Self>> {
        let file = target().join(format!("mutants/reached-{}", std::process::id()));
        fs::write(&file, vec![0; 1 << 16])?;
        let before = trial::seconds_of_children()?;
        let ending = test.run(("MUTANT_TRACE", &file.to_string_lossy()), most.saturating_mul(4).clamp(10, 600))?;
        let (seconds, mut reached) = (trial::seconds_of_children()? - before, fs::read(&file)?);
        reached.truncate(n_numbers);
        let is_whole = ending == Ending::Passed || seconds > most as f64;
        Ok(is_whole.then(|| Self { test: test.clone(), seconds, reached }))
    }
}

fn test(
    (package, folder, targets): &(&str, &str, &[&str]),
    modules: &[&Module],
    chosen: &Chosen,
    end: Option<Instant>,
    ledger: &mut Ledger,
) -> Result<()> {
    let mut left = Vec::new();
    for module in modules {
        let mutants = mutants(module)?;
        let n_all = mutants.len();
        let is_left = |mutant: &Mutant| {
            mutant.is_in(&chosen.file)
                && mutant
                    .verdict(ledger)
                    .is_none_or(|verdict| chosen.again && matches!(verdict, "missed" | "unreached"))
        };
        let some: Vec<_> = mutants.into_iter().filter(is_left).collect();
        println!("== mutants: {}, {} of {n_all} to test", module.name, some.len());
        left.extend(some);
    }
    let numbered: Vec<_> =
        left.iter().enumerate().filter_map(|(index, mutant)| mutant.placed(index as u32 + 1)).collect();
    if numbered.is_empty() {
        return Ok(());
    }
    let built = programs::build(package, folder, targets, &numbered)?;
    for number in &built.unviable {
        let mutant = &left[*number as usize - 1];
        ledger.write(&mutant.print, "unviable", &mutant.key)?;
    }
    let mut tests = Vec::new();
    for test in &built.tests {
        match Measured::new(test, left.len() + 1, chosen.seconds)? {
            Some(measured) => tests.push(measured),
            None => println!("left out, since it fails without a change: {}", test.name),
        }
    }
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    println!("{} tests, {:.0} s", tests.len(), tests.iter().map(|test| test.seconds).sum::<f64>());
    try_all(&left, &built, &tests, chosen, end, ledger)?;
    for mutant in numbered.iter().filter(|_| chosen.constants) {
        let one = &left[mutant.number as usize - 1];
        let is_over = end.is_some_and(|end| Instant::now() >= end);
        if !is_over && one.verdict(ledger) == Some("unreached") && one.is_constant() {
            let verdict = programs::constant(package, targets, mutant)?;
            println!("{verdict}: {}", one.name);
            ledger.write(&one.print, verdict, &one.key)?;
        }
    }
    Ok(())
}
/// Puts one mutant after the other in force, in several processes at once, and records the verdicts.
fn try_all(
    left: &[Mutant],
    built: &Built,
    tests: &[Measured],
    chosen: &Chosen,
    end: Option<Instant>,
    ledger: &mut Ledger,
) -> Result<()> {
    let numbers: Vec<_> = built.firsts.iter().collect();
    let (next, ledger) = (AtomicUsize::new(0), Mutex::new(ledger));
    let work = || -> Result<()> {
        while let Some((number, first)) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let mutant = &left[**number as usize - 1];
            let verdict = verdict(**number, **first, tests, chosen.seconds as f64)?;
            if verdict != "caught" {
                println!("{verdict}: {}", mutant.name);
            }
            ledger.lock().unwrap_or_else(PoisonError::into_inner).write(&mutant.print, verdict, &mutant.key)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..chosen.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })
}

/// Runs the tests that reach a place with a mutant in force, but for those that take longer than `most` seconds.
fn verdict(number: u32, first: u32, tests: &[Measured], most: f64) -> Result<&'static str> {
    let mut reaching = tests.iter().filter(|test| test.reached.get(first as usize) == Some(&1)).peekable();
    if reaching.peek().is_none() {
        return Ok("unreached");
    }
    for measured in reaching.filter(|test| test.seconds <= most) {
        let seconds = 3 + 4 * measured.seconds.ceil() as u64;
        if measured.test.run(("MUTANT_IN_FORCE", &number.to_string()), seconds)? == Ending::Failed {
            return Ok("caught");
        }
    }
    Ok("missed")
}

/// Prints the counts, and the survivors. Mutants of constants that were not built alone are counted by themselves.
fn report(module: &Module, ledger: &Ledger) -> Result<()> {
    let mutants = mutants(module)?;
    let of = |wanted: &str| mutants.iter().filter(|mutant| mutant.verdict(ledger) == Some(wanted)).collect::<Vec<_>>();
    let (caught, missed, unviable) = (of("caught").len(), of("missed"), of("unviable").len());
    let (constants, unreached): (Vec<_>, Vec<_>) = of("unreached").into_iter().partition(|mutant| mutant.is_constant());
    let n_survivors = missed.len() + unreached.len();
    let left = mutants.len() - caught - n_survivors - unviable - constants.len();
    let percent = 100.0 * caught as f64 / ((caught + n_survivors).max(1) as f64);
    println!(
        "{}: {caught} caught, {n_survivors} survived ({percent:.0} % of both caught), {} constants, {unviable} unviable, {left} left",
        module.name,
        constants.len()
    );
    missed.iter().for_each(|mutant| println!("    {}", mutant.name));
    unreached.iter().for_each(|mutant| println!("    no test reaches {}", mutant.name));
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
