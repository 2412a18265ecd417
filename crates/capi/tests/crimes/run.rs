//! Commits crimes and mounts attacks: compiles the programs, runs each under each allocator, two at a time, and judges how it ended.

use crate::harness::{crate_dir, scratch, succeed};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// By a signal, before the deed was done.
    AtOnce,
    /// By an abort, after the deed.
    Later,
    /// It came to its end, and the crime had no effect.
    NoEffect,
    /// After the deed, by a crash, by running for ever or without memory: the heap is broken, and whoever commits the crime may prevent that.
    Breaks,
    /// It came to its end: the crime went unnoticed, or the attack succeeded.
    Missed,
}

impl Verdict {
    /// Whether the crime did not pay.
    pub(crate) fn is_caught(self) -> bool {
        matches!(self, Self::AtOnce | Self::Later | Self::NoEffect)
    }
}

/// What is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    /// The programs of `tests/c/crimes`.
    Crimes,
    /// The programs of `tests/c/attacks`, with the scene of the crimes.
    Attacks,
}

/// What the programs run under.
#[derive(Clone)]
pub(crate) struct Allocator {
    /// Its name in tables.
    pub(crate) name: String,
    /// The value of `LD_PRELOAD`; without one the programs have the C library's allocator.
    pub(crate) preload: Option<String>,
    /// Of the environment.
    pub(crate) variables: Vec<(String, String)>,
}

impl Allocator {
    /// Reads `NAME=LIBRARY,VARIABLE=VALUE,…`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split(',').map(|part| part.split_once('=').unwrap_or((part, "")));
        let (name, library) = parts.next().unwrap_or(("system", ""));
        assert!(library.is_empty() || Path::new(library).is_file(), "{library} is no library");
        Self {
            name: name.into(),
            preload: (!library.is_empty()).then(|| library.into()),
            variables: parts.map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }
}

/// A crime under each allocator.
pub(crate) struct Row {
    pub(crate) crime: String,
    /// What it is, in words.
    pub(crate) what: String,
    /// One of the 113.
    pub(crate) is_counted: bool,
    sizes: Vec<String>,
    /// For each allocator, for each size.
    pub(crate) verdicts: Vec<Vec<Verdict>>,
}

/// Every crime of a suite under each allocator.
pub(crate) struct Table {
    pub(crate) suite: Suite,
    pub(crate) allocators: Vec<Allocator>,
    pub(crate) rows: Vec<Row>,
    /// Programs that were aborted without a line on standard error.
    pub(crate) aborted_silently: Vec<String>,
}

impl Table {
    /// The row of a crime.
    pub(crate) fn row(&self, crime: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.crime == crime)
    }

    /// How many programs count.
    pub(crate) fn n_counted(&self) -> usize {
        self.rows.iter().filter(|row| row.is_counted).map(|row| row.sizes.len()).sum()
    }

    /// How many of them an allocator catches.
    pub(crate) fn n_caught(&self, allocator: usize) -> usize {
        let counted = self.rows.iter().filter(|row| row.is_counted);
        counted.flat_map(|row| &row.verdicts[allocator]).filter(|verdict| verdict.is_caught()).count()
    }
}

/// The C++ files of a folder of `tests/c`.
fn sources(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(crate_dir().join("tests/c").join(folder)).expect("the sources are there");
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    let mut sources: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "cpp")).collect();
    sources.sort();
    sources
}

/// The program: without optimizations, and without anything of the compiler that sees crimes itself.
fn compile(suite: Suite) -> PathBuf {
    let (name, sources) = match suite {
        Suite::Crimes => ("crimes", sources("crimes")),
        Suite::Attacks => {
            let shared = ["main.cpp", "scene.cpp"].map(|file| crate_dir().join("tests/c/crimes").join(file));
            ("attacks", [sources("attacks"), shared.into()].concat())
        }
    };
    let program = scratch("programs").join(name);
    let draft = program.with_extension(std::process::id().to_string());
    let mut compile = Command::new("c++");
    compile.args(["-std=c++17", "-O0", "-g", "-fno-builtin", "-fsized-deallocation", "-pthread", "-Wall", "-Wextra"]);
    compile.args(["-fno-stack-protector", "-U_FORTIFY_SOURCE", "-Wno-missing-field-initializers"]);
    succeed(compile.args(&sources).arg("-ldl").arg("-o").arg(&draft));
    fs::rename(&draft, &program).expect("a file of our own can be renamed");
    program
}

/// The crimes that the program lists, without verdicts.
fn listed(program: &Path) -> Vec<Row> {
    let list = succeed(Command::new(program).arg("list"));
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut field = || fields.next().expect("a line has four fields");
        let (crime, counted, sizes, what) = (field(), field(), field(), field());
        let sizes = sizes.split(' ').map(str::to_owned).collect();
        Row { crime, what, is_counted: counted == "counted", sizes, verdicts: Vec::new() }
    };
    list.lines().map(row).collect()
}

/// Commits every crime of a suite under each allocator.
pub(crate) fn commit_all(suite: Suite, allocators: Vec<Allocator>) -> Table {
    let program = compile(suite);
    let mut rows = listed(&program);
    let mut aborted_silently = Vec::new();
    for allocator in &allocators {
        let jobs = rows.iter().flat_map(|row| row.sizes.iter().map(|size| (row.crime.clone(), size.clone())));
        let outputs = run_two_at_a_time(&program, allocator, &jobs.collect::<Vec<_>>());
        let mut outputs = outputs.into_iter();
        for row in &mut rows {
            let verdict = |(size, output): (&String, Output)| {
                let called = format!("{} {size} under {}", row.crime, allocator.name);
                if output.status.signal() == Some(SIGABRT) && output.stderr.is_empty() {
                    aborted_silently.push(called.clone());
                }
                judge(&called, &output)
            };
            row.verdicts.push(row.sizes.iter().zip(&mut outputs).map(verdict).collect());
        }
    }
    Table { suite, allocators, rows, aborted_silently }
}

/// The outputs of `program CRIME SIZE` for each pair, in their order.
fn run_two_at_a_time(program: &Path, allocator: &Allocator, jobs: &[(String, String)]) -> Vec<Output> {
    let outputs: Mutex<Vec<Option<Output>>> = Mutex::new(vec![None; jobs.len()]);
    let next = Mutex::new(0..jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(job) = next.lock().expect("no runner panics").next() else { return };
                    let mut command = Command::new(program);
                    command.args([&jobs[job].0, &jobs[job].1]).env_remove("LD_PRELOAD");
                    command.envs(allocator.preload.iter().map(|preload| ("LD_PRELOAD", preload)));
                    command.envs(allocator.variables.iter().map(|(name, value)| (name, value)));
                    let output = command.output().expect("the program can be run");
                    outputs.lock().expect("no runner panics")[job] = Some(output);
                }
            });
        }
    });
    let outputs = outputs.into_inner().expect("no runner panicked");
    outputs.into_iter().map(|output| output.expect("every job was run")).collect()
}

const SIGABRT: i32 = 6;
const SIGALRM: i32 = 14;
const SIGXCPU: i32 = 24;
/// The exit status of a crime without effect: `Outcome` in `tests/c/crimes/scene.h`.
const NO_EFFECT: i32 = 10;
/// The exit status of a program that got no memory.
const NO_MEMORY: i32 = 4;

fn judge(called: &str, output: &Output) -> Verdict {
    let is_done = output.stdout.starts_with(b"committed");
    match (output.status.code(), output.status.signal()) {
        (Some(0), _) => Verdict::Missed,
        (Some(NO_EFFECT), _) => Verdict::NoEffect,
        (Some(NO_MEMORY), _) | (_, Some(SIGALRM | SIGXCPU)) => Verdict::Breaks,
        (_, Some(_)) if !is_done => Verdict::AtOnce,
        (_, Some(SIGABRT)) => Verdict::Later,
        (_, Some(_)) => Verdict::Breaks,
        _ => panic!("{called}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitStatus;

    const SIGSEGV: i32 = 11;

    fn ended(status: i32, stdout: &str) -> Verdict {
        let output = Output { status: ExitStatus::from_raw(status), stdout: stdout.into(), stderr: Vec::new() };
        judge("a program", &output)
    }

    #[test]
    fn a_signal_before_the_deed_is_at_once_and_an_abort_after_it_is_later() {
        assert_eq!([SIGABRT, SIGSEGV].map(|signal| ended(signal, "")), [Verdict::AtOnce; 2]);
        assert_eq!(ended(SIGABRT, "committed\n"), Verdict::Later);
    }

    #[test]
    fn a_crash_after_the_deed_and_a_program_that_hangs_are_not_caught() {
        let broken = [ended(SIGSEGV, "committed\n"), ended(SIGALRM, ""), ended(SIGXCPU, ""), ended(NO_MEMORY << 8, "")];
        assert_eq!(broken, [Verdict::Breaks; 4]);
        assert!(!Verdict::Breaks.is_caught());
    }

    #[test]
    fn a_program_that_comes_to_its_end_says_itself_what_the_crime_did() {
        assert_eq!(ended(NO_EFFECT << 8, "committed\n"), Verdict::NoEffect);
        assert_eq!(ended(0, "committed\n"), Verdict::Missed);
    }

    #[test]
    #[should_panic(expected = "a program")]
    fn a_program_that_is_not_at_its_level_has_no_verdict() {
        let _ = ended(3 << 8, "");
    }

    #[test]
    fn an_allocator_is_read_with_its_variables() {
        let read = Allocator::parse("system=,A=b,C=");
        assert_eq!((read.name.as_str(), read.preload), ("system", None));
        assert_eq!(read.variables, [("A".to_owned(), "b".to_owned()), ("C".to_owned(), String::new())]);
    }
}
