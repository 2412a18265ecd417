//! `cargo xtask miri`: runs each unit test and black-box test of the crates without system calls under Miri, one at a time.
//!
//! The command records each verdict with a fingerprint of the sources ([`Ledger`]), so it can be stopped at any time and resumes
//! where it was. The heap runs over the fake kernel, with permissive provenance: its address range is at an address agreed with the kernel, which
//! `base::ptr` exposes. Everything else runs with strict provenance.

use crate::ledger::{Ledger, fingerprint};
use crate::process::{command, output, root, run, target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Packages, their folders, and how strict Miri is with their pointers.
const INTERPRETED: [(&str, &str, &str); 4] = [
    ("freestone-base", "crates/base", "strict"),
    ("freestone-tlsf", "crates/tlsf", "strict"),
    ("freestone-pool", "crates/pool", "strict"),
    ("freestone", "crates/freestone", "permissive"),
];

/// The arguments.
#[derive(clap::Args)]
pub(crate) struct Chosen {
    /// Only this package.
    package: Option<String>,
    /// Stop a test after this many minutes; a later run tries it again.
    #[arg(long, default_value_t = 30)]
    test_minutes: u64,
    /// Start no more tests after this many minutes.
    #[arg(long, default_value_t = u64::MAX / 60)]
    minutes: u64,
}

/// Runs the tests that have no verdict yet, and prints the verdicts and the tests that are left. Fails if a test failed.
pub(crate) fn miri(chosen: &Chosen) -> Result<()> {
    let names = INTERPRETED.map(|(package, ..)| package);
    if chosen.package.as_ref().is_some_and(|package| !names.contains(&package.as_str())) {
        bail!("Miri runs {}: name one of them, or none for all", names.join(", "));
    }
    install()?;
    let mut ledger = Ledger::open("miri")?;
    let end = Instant::now().checked_add(Duration::from_secs(chosen.minutes.saturating_mul(60)));
    let (mut report, mut failed) = (Vec::new(), Vec::new());
    for (package, folder, provenance) in INTERPRETED {
        if chosen.package.as_ref().is_some_and(|chosen| chosen != package) {
            continue;
        }
        let sources = [folder, "crates/base", "crates/os", "crates/testkit"].map(|folder| root().join(folder));
        let print = fingerprint(&sources)?;
        let (mut passed, mut ignored, mut left) = (0, 0, Vec::new());
        for target in targets(&sources[0])? {
            for test in tests(package, provenance, &target)? {
                let name = format!("{package} {} {test}", target.join(" "));
                if ledger.verdict(&print, &name).is_none() && end.is_none_or(|end| Instant::now() < end) {
                    println!("== miri: {name}");
                    let verdict = interpret(package, provenance, &target, &test, chosen.test_minutes)?;
                    match verdict {
                        Some(verdict) => ledger.write(&print, verdict, &name)?,
                        None => println!("stopped after {} minutes", chosen.test_minutes),
                    }
                }
                match ledger.verdict(&print, &name) {
                    Some("passed") => passed += 1,
                    Some("ignored") => ignored += 1,
                    Some(_) => failed.push(name),
                    None => left.push(name),
                }
            }
        }
        report.push(format!(
            "{package}: {passed} tests passed under Miri with {provenance} provenance, {ignored} not for Miri, {} left",
            left.len()
        ));
        report.extend(left.iter().map(|name| format!("    left: {name}")));
    }
    report.extend(failed.iter().map(|name| format!("FAILED {name}")));
    println!("{}", report.join("\n"));
    if failed.is_empty() { Ok(()) } else { bail!("{} tests failed under Miri", failed.len()) }
}

fn install() -> Result<()> {
    let components = output(&mut command("rustup", &["+nightly", "component", "list", "--installed"]))
        .context("Miri needs the nightly toolchain: `rustup toolchain install nightly`")?;
    if components.contains("miri") {
        return Ok(());
    }
    run(&mut command("rustup", &["+nightly", "component", "add", "miri", "rust-src"]))
}

/// The test targets of a crate, as cargo's arguments.
fn targets(folder: &std::path::Path) -> Result<Vec<Vec<String>>> {
    let mut targets = vec![vec!["--lib".to_owned()]];
    let tests = folder.join("tests");
    if tests.is_dir() {
        let mut files: Vec<PathBuf> = fs::read_dir(tests)?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        let names = files.iter().filter(|file| file.is_file()).filter_map(|file| file.file_stem()?.to_str());
        targets.extend(names.map(|name| vec!["--test".to_owned(), name.to_owned()]));
    }
    Ok(targets)
}

fn cargo_miri(package: &str, provenance: &str, target_of_crate: &[String], arguments: &[&str]) -> Command {
    let mut command = command("rustup", &["run", "nightly", "cargo", "miri", "test", "--quiet", "--package", package]);
    command.args(target_of_crate).arg("--").args(arguments).env_remove("RUSTUP_TOOLCHAIN");
    command.env("MIRIFLAGS", format!("-Zmiri-{provenance}-provenance -Zmiri-disable-isolation"));
    command.env("CARGO_TARGET_DIR", target().join("miri")).env("PROPTEST_CASES", "4");
    command
}

/// The names of a target's tests.
fn tests(package: &str, provenance: &str, target: &[String]) -> Result<Vec<String>> {
    let listed = output(&mut cargo_miri(package, provenance, target, &["--list", "--format", "terse"]))?;
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs one test. Returns its verdict, or nothing if it took too long.
fn interpret(
    package: &str,
    provenance: &str,
    target: &[String],
    test: &str,
    minutes: u64,
) -> Result<Option<&'static str>> {
    let command = cargo_miri(package, provenance, target, &["--exact", test]);
    let limit = format!("{}m", minutes.max(1));
    let mut limited = Command::new("timeout");
    limited.arg(limit).arg(command.get_program()).args(command.get_args()).current_dir(root());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.stdin(Stdio::null());
    let output = limited.output().context("cannot start `timeout`: is coreutils installed?")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(Some(if text.contains("1 passed") { "passed" } else { "ignored" }));
    }
    // The exit status of `timeout` when the time is over.
    if output.status.code() == Some(124) {
        return Ok(None);
    }
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(Some("failed"))
}
