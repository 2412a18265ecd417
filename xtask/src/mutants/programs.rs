//! Builds the tests of a crate with all its mutants in them.

use super::changed::{Change, mutant_at, with_mutants, with_one};
use super::trial::Test;
use crate::process::{output, root, target};
use crate::scratch::{Outcome, Scratch, outcome};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A mutant: its number, its file, where it is, and what it changes.
pub(crate) struct Placed {
    pub number: u32,
    pub file: String,
    pub at: (usize, usize),
    pub change: Change,
}

/// A crate, built with mutants.
pub(crate) struct Built {
    pub tests: Vec<Test>,
    /// Numbers of mutants that do not compile.
    pub unviable: BTreeSet<u32>,
    /// The numbers of the mutants that are in the programs, each with the number that a run marks as reached when it comes to the place.
    pub firsts: BTreeMap<u32, u32>,
}

/// The module that says which mutant is in force.
const SWITCH: &str = include_str!("switch.txt");

/// Writes the mutants into a copy of the tree, but for those that do not compile, and builds the tests.
pub(crate) fn build(package: &str, folder: &str, targets: &[&str], mutants: &[Placed]) -> Result<Built> {
    let scratch = Scratch::copy()?;
    let mut unviable = BTreeSet::new();
    let library = format!("{folder}/src/lib.rs");
    let mut files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    files.insert(&library);
    let firsts = loop {
        let (mut written, mut all_firsts) = (BTreeMap::new(), BTreeMap::new());
        for file in &files {
            let source = fs::read_to_string(root().join(file))?;
            let some = mutants.iter().filter(|mutant| mutant.file == **file && !unviable.contains(&mutant.number));
            let some: Vec<_> = some.map(|mutant| (mutant.number, mutant.at, &mutant.change)).collect();
            let (mut text, firsts) = with_mutants(&source, &some).with_context(|| file.to_string())?;
            all_firsts.extend(firsts);
            if **file == *library {
                text = format!(
                    "#![feature(core_intrinsics, const_eval_select)]\n#![allow(internal_features)]\n{text}\n{SWITCH}"
                );
            }
            fs::write(scratch.path(file), &text)?;
            written.insert((*file).to_owned(), text);
        }
        let mut check = cargo(&scratch, package, targets, &["--no-run", "--message-format", "short"]);
        let check = check.output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&check.stderr).into_owned();
        let bad = refused(&said, &written);
        if bad.is_empty() {
            if !check.status.success() {
                bail!("{package} does not compile, whatever the mutants are:\n{said}");
            }
            break all_firsts;
        }
        let n_before = unviable.len();
        unviable.extend(bad);
        println!("{} mutants do not compile", unviable.len());
        if unviable.len() == n_before {
            bail!("{package} does not compile with mutants:\n{said}");
        }
    };
    let tests = tests(&scratch, package, folder, targets)?;
    for file in &files {
        fs::write(scratch.path(file), fs::read(root().join(file))?)?;
    }
    Ok(Built { tests, unviable, firsts })
}

/// Builds and runs the tests with one mutant alone, which is in a constant: no program can have several values of it. Returns the verdict.
pub(crate) fn constant(package: &str, targets: &[&str], mutant: &Placed) -> Result<&'static str> {
    let scratch = Scratch::copy()?;
    let source = fs::read_to_string(root().join(&mutant.file))?;
    let changed = with_one(&source, mutant.at, &mutant.change).with_context(|| mutant.file.clone())?;
    scratch.with(&mutant.file, &changed, |scratch| {
        let mut build = cargo(scratch, package, targets, &["--no-run"]);
        if outcome(build.env("CARGO_TARGET_DIR", target().join("mutants/constants")), Duration::from_secs(3600))?
            != Outcome::Passed
        {
            return Ok("unviable");
        }
        let mut run = cargo(scratch, package, targets, &[]);
        let ending = outcome(run.env("CARGO_TARGET_DIR", target().join("mutants/constants")), LONGEST)?;
        Ok(if ending == Outcome::Passed { "missed" } else { "caught" })
    })
}

/// Tests that take longer with a changed constant never end.
const LONGEST: Duration = Duration::from_secs(900);

fn cargo(scratch: &Scratch, package: &str, targets: &[&str], more: &[&str]) -> Command {
    let mut command = scratch.cargo("mutants", &[&["test", "--package", package], targets, more].concat());
    // Lints of ours are about the code as it is. The switch works in constant functions too, which needs an unstable function.
    command.env("RUSTFLAGS", "--cap-lints allow").env("RUSTC_BOOTSTRAP", package.replace('-', "_"));
    command.env("CARGO_TARGET_DIR", target().join("mutants"));
    command
}

/// The mutants to which the compiler's errors point.
fn refused(said: &str, written: &BTreeMap<String, String>) -> BTreeSet<u32> {
    let errors = said.lines().filter(|line| line.contains(": error"));
    let place = |error: &str| {
        let mut parts = error.split(':');
        let (file, line) = (parts.next()?, parts.next()?.parse::<usize>().ok()?);
        let (_, text) = written.iter().find(|(name, _)| name.ends_with(file) || file.ends_with(name.as_str()))?;
        mutant_at(text, line, error.contains("E0004"))
    };
    errors.filter_map(place).collect()
}

/// Where the programs of this run are: copies, because a later build of the same crate writes to the same names.
pub(crate) fn folder() -> PathBuf {
    target().join(format!("mutants/programs-{}", std::process::id()))
}

/// Every test of the programs that were built.
fn tests(scratch: &Scratch, package: &str, folder: &str, targets: &[&str]) -> Result<Vec<Test>> {
    let messages = output(&mut cargo(scratch, package, targets, &["--no-run", "--message-format", "json"]))?;
    let programs = messages.lines().filter(|line| line.contains("\"test\":true"));
    let programs = programs.filter_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'));
    let copies = self::folder();
    fs::create_dir_all(&copies)?;
    let mut tests = Vec::new();
    for (from, _) in programs {
        let name = Path::new(from).file_name().context("a program has a name")?;
        let program = copies.join(name);
        fs::copy(from, &program)?;
        let listed = output(Command::new(&program).args(["--list", "--format", "terse"]))?;
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        tests.extend(names.map(|name| Test { program: program.clone(), folder: folder.into(), name: name.into() }));
    }
    if tests.is_empty() { bail!("{package} has no tests:\n{messages}") } else { Ok(tests) }
}
