//! `cargo xtask miri`: runs each unit test and black-box test of the crates without system calls under Miri, one after the other.
//!
//! Miri compiles the crate whenever it starts, so one process runs all tests of a target that are left; if a test takes too long or ends the process,
//! another process runs those behind it. Most of the time of the heap's tests goes into Miri's aliasing rules (Stacked Borrows): those that take too
//! long with them run with `--no-aliasing`, which checks everything else. The command records each verdict with a fingerprint of the sources ([`Ledger`]) as the test ends, so it
//! can be stopped at any time and resumes where it was. The heap runs over the fake kernel, with permissive provenance: its address range is at an address agreed with the kernel, which
//! `base::ptr` exposes. Everything else runs with strict provenance.

use crate::ledger::{Ledger, fingerprint};
use crate::process::{command, output, root, run, target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
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
    /// Run the tests that are left without the rules of aliasing (Stacked Borrows), which is six times faster.
    #[arg(long)]
    no_aliasing: bool,
    /// Run only the tests whose number, modulo N, is K: one of several processes.
    #[arg(long, value_name = "K/N", default_value = "0/1", value_parser = crate::arguments::shard)]
    shard: (usize, usize),
}

/// The verdict on a test that passed without the rules of aliasing. Without `--no-aliasing` such a test is tried again.
const WITHOUT_ALIASING: &str = "unaliased";

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
    let is_chosen = |package: &str| chosen.package.as_ref().is_none_or(|chosen| chosen == package);
    for (package, folder, provenance) in INTERPRETED.into_iter().filter(|(package, ..)| is_chosen(package)) {
        let sources = [folder, "crates/base", "crates/os", "crates/testkit"].map(|folder| root().join(folder));
        let print = fingerprint(&sources)?;
        let mut tally = Tally::default();
        let flags = Flags { provenance, no_aliasing: chosen.no_aliasing };
        for target in targets(&sources[0])? {
            let name = |test: &str| format!("{package} {} {test}", target.join(" "));
            let tests = tests(package, flags, &target)?;
            let is_untried = |test: &&str| match ledger.verdict(&print, &name(test)) {
                Some(WITHOUT_ALIASING) => !chosen.no_aliasing,
                verdict => verdict.is_none(),
            };
            let is_ours = |at: usize| at % chosen.shard.1 == chosen.shard.0;
            let ours = tests.iter().enumerate().filter_map(|(at, test)| is_ours(at).then_some(test.as_str()));
            let mut untried: Vec<_> = ours.filter(is_untried).collect();
            while !untried.is_empty() && end.is_none_or(|end| Instant::now() < end) {
                println!("== miri: {package} {}, {} tests", target.join(" "), untried.len());
                let mut command = cargo_miri(package, flags, &target, &["--test-threads", "1", "--exact"]);
                let child = command.args(&untried).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).spawn();
                let most = (Duration::from_secs(60 * chosen.test_minutes.max(1)), end);
                let note = |test: &str, verdict: &str| {
                    let verdict = if chosen.no_aliasing && verdict == "passed" { WITHOUT_ALIASING } else { verdict };
                    println!("{verdict}: {test}");
                    untried.retain(|other| *other != test);
                    ledger.write(&print, verdict, &name(test))
                };
                let stopped = interpret(child.context("cannot start cargo")?, most, note)?;
                // Tests run in the order of their list.
                match (untried.first().copied(), stopped) {
                    (Some(test), Stopped::Died) => ledger.write(&print, "failed", &name(test))?,
                    (Some(test), Stopped::TooLong) => println!("stopped after {} minutes: {test}", chosen.test_minutes),
                    _ => break,
                }
                untried.remove(0);
            }
            tests.iter().map(|test| name(test)).for_each(|name| tally.add(ledger.verdict(&print, &name), name));
        }
        report.push(format!("{package}: {}", tally.text(provenance)));
        report.extend(tally.left.iter().map(|name| format!("    left: {name}")));
        failed.append(&mut tally.failed);
    }
    report.extend(failed.iter().map(|name| format!("FAILED {name}")));
    println!("{}", report.join("\n"));
    if failed.is_empty() { Ok(()) } else { bail!("{} tests failed under Miri", failed.len()) }
}

/// The verdicts on the tests of a package.
#[derive(Default)]
struct Tally {
    passed: usize,
    unaliased: usize,
    ignored: usize,
    failed: Vec<String>,
    left: Vec<String>,
}

impl Tally {
    fn add(&mut self, verdict: Option<&str>, name: String) {
        match verdict {
            Some("passed") => self.passed += 1,
            Some(WITHOUT_ALIASING) => self.unaliased += 1,
            Some("ignored") => self.ignored += 1,
            Some(_) => self.failed.push(name),
            None => self.left.push(name),
        }
    }

    fn text(&self, provenance: &str) -> String {
        let Self { passed, unaliased, ignored, left, .. } = self;
        format!(
            "{passed} tests passed under Miri with {provenance} provenance, {unaliased} more without the rules of aliasing, \
             {ignored} not for Miri, {} left",
            left.len()
        )
    }
}

fn install() -> Result<()> {
    let components = output(&mut command("rustup", &["+nightly", "component", "list", "--installed"]))
        .context("Miri needs the nightly toolchain: `rustup toolchain install nightly`")?;
    if components.contains("miri") {
        return Ok(());
    }
    run(&mut command("rustup", &["+nightly", "component", "add", "miri", "rust-src"]))
}

/// The test targets of a crate, as cargo's arguments, but for those that use the process's heap: its system calls are none of Miri's.
fn targets(folder: &std::path::Path) -> Result<Vec<Vec<String>>> {
    let mut targets = vec![vec!["--lib".to_owned()]];
    let tests = folder.join("tests");
    if tests.is_dir() {
        let mut files: Vec<PathBuf> = fs::read_dir(tests)?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        let uses_heap = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains("freestone::"));
        files.retain(|file| file.is_file() && !uses_heap(file));
        let names = files.iter().filter_map(|file| file.file_stem()?.to_str());
        targets.extend(names.map(|name| vec!["--test".to_owned(), name.to_owned()]));
    }
    Ok(targets)
}

/// What Miri is told.
#[derive(Clone, Copy)]
struct Flags {
    provenance: &'static str,
    no_aliasing: bool,
}

fn cargo_miri(package: &str, flags: Flags, target_of_crate: &[String], arguments: &[&str]) -> Command {
    let mut command = command("rustup", &["run", "nightly", "cargo", "miri", "test", "--package", package]);
    command.args(target_of_crate).arg("--").args(arguments).env_remove("RUSTUP_TOOLCHAIN");
    let aliasing = if flags.no_aliasing { " -Zmiri-disable-stacked-borrows" } else { "" };
    command.env("MIRIFLAGS", format!("-Zmiri-{}-provenance -Zmiri-disable-isolation{aliasing}", flags.provenance));
    command.env("CARGO_TARGET_DIR", target().join("miri")).env("PROPTEST_CASES", "4");
    // The other generator's rounds take Miri a third of the time of a test of streams.
    command.env("PROPTEST_RNG_ALGORITHM", "xs");
    command
}

/// The names of a target's tests.
fn tests(package: &str, flags: Flags, target: &[String]) -> Result<Vec<String>> {
    let listed = output(&mut cargo_miri(package, flags, target, &["--list", "--format", "terse"]))?;
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Why a process that runs tests ended.
enum Stopped {
    /// All tests ended.
    Done,
    /// The process ended in a test.
    Died,
    /// A test took too long.
    TooLong,
    /// The time for all is over.
    Over,
}

/// Reads what the tests of a process say, and calls `note` with each that ends, and its verdict. Ends the process if a test takes longer than `most`, and at
/// the end of the time for all.
fn interpret(
    mut child: Child,
    (most, end): (Duration, Option<Instant>),
    mut note: impl FnMut(&str, &str) -> Result<()>,
) -> Result<Stopped> {
    let said = BufReader::new(child.stdout.take().context("its output is read")?);
    let (sender, lines) = channel();
    let reader = thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // Miri compiles the crate before the first test.
    let mut begun = Instant::now() + Duration::from_secs(300);
    let stopped = loop {
        let until = end.map_or(begun + most, |end| end.min(begun + most));
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                match verdict(&line) {
                    Some((test, verdict)) => note(test, verdict)?,
                    None => println!("{line}"),
                }
                begun = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => {
                let is_done = child.wait()?.success();
                break if is_done { Stopped::Done } else { Stopped::Died };
            }
            Err(RecvTimeoutError::Timeout) => {
                // The whole group: cargo has children.
                Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
                child.wait()?;
                break if end.is_some_and(|end| Instant::now() >= end) { Stopped::Over } else { Stopped::TooLong };
            }
        }
    };
    let _ = reader.join();
    Ok(stopped)
}

/// The test that a line says the end of, and its verdict.
fn verdict(line: &str) -> Option<(&str, &'static str)> {
    let (test, ending) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let verdict = match ending {
        "ok" => "passed",
        "FAILED" => "failed",
        _ if ending.starts_with("ignored") => "ignored",
        _ => return None,
    };
    Some((test.trim_end_matches(" - should panic"), verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_program_says_of_a_test_is_its_verdict() {
        assert_eq!(verdict("test a::b ... ok"), Some(("a::b", "passed")));
        assert_eq!(verdict("test a::b - should panic ... ok"), Some(("a::b", "passed")));
        assert_eq!(verdict("test a::b ... ignored, needs the kernel"), Some(("a::b", "ignored")));
        assert_eq!(verdict("test a::b ... FAILED"), Some(("a::b", "failed")));
        assert_eq!(verdict("test result: ok. 3 passed; 0 failed"), None);
    }

    #[test]
    fn a_process_is_over_when_it_ends_or_when_a_test_takes_too_long() {
        let run = |script: &str, end: Option<Instant>| {
            let mut command = Command::new("sh");
            let child = command.args(["-c", script]).stdout(Stdio::piped()).process_group(0).spawn().expect("a shell");
            let mut seen = Vec::new();
            let note = |test: &str, verdict: &str| {
                seen.push(format!("{test} {verdict}"));
                Ok(())
            };
            let stopped = interpret(child, (Duration::from_secs(60), end), note).expect("it can be read");
            (seen, stopped)
        };
        assert!(matches!(run("echo 'test a ... ok'", None), (seen, Stopped::Done) if seen == ["a passed"]));
        assert!(matches!(run("echo 'test a ... ok'; exit 1", None), (seen, Stopped::Died) if seen == ["a passed"]));
        let soon = Some(Instant::now() + Duration::from_secs(2));
        assert!(matches!(run("sleep 100", soon), (seen, Stopped::Over) if seen.is_empty()));
    }
}
