//! The test programs of the workspace: cargo builds them, and they run two at a time. Cargo itself runs one after the other, and most end with one test
//! that the others have left alone.

use crate::process::{cargo, root, target};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

/// How many run at a time; each has as many threads as there are processors.
const AT_A_TIME: usize = 2;

/// Cargo's arguments for the tests of all packages, with the features that are off by default.
pub(crate) const ALL: [&str; 3] = ["--workspace", "--features", "freestone/allocator-api2,freestone/allocator-api2-02"];

/// A test program, the folder that cargo runs it in, and what it is called here.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) name: String,
}

/// A command that has to succeed, and what it is called.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) command: Command,
}

impl Program {
    /// The command that runs it, as cargo does.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        command
    }
}

/// Builds the test programs of these packages, or of all: cargo's messages name them.
pub(crate) fn build(packages: &[String]) -> Result<Vec<Program>> {
    let mut build = cargo(&["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    match packages {
        [] => build.args(ALL),
        some => build.args(some.iter().flat_map(|package| ["--package", package])),
    };
    let built = build.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !built.status.success() {
        bail!("the tests do not build: see above");
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let programs: Vec<_> = messages.lines().filter_map(test_program).collect();
    if programs.is_empty() { bail!("there are no tests") } else { Ok(programs) }
}

/// The test program that a message of cargo names; `None` of a message about something else, as a command that was built for its tests.
fn test_program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let name = source.strip_prefix(root()).unwrap_or(source).display().to_string();
    Some(Program { path, folder, name })
}

/// Runs the jobs in this order, all of them whether or not one fails, and prints the output of each when it has ended.
pub(crate) fn run_all(jobs: Vec<Job>) -> Result<()> {
    let jobs = Mutex::new(jobs.into_iter());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(job) = next(&jobs) {
                    let name = job.name.clone();
                    if let Err(error) = run(job) {
                        println!("{error:#}");
                        failed.lock().expect("nothing panics with the lock held").push(name);
                    }
                }
            });
        }
    });
    match failed.into_inner().expect("nothing panicked with the lock held").as_slice() {
        [] => Ok(()),
        names => bail!("failed: {}", names.join(", ")),
    }
}

fn next(jobs: &Mutex<impl Iterator<Item = Job>>) -> Option<Job> {
    jobs.lock().expect("nothing panics with the lock held").next()
}

/// Runs a command, and prints its output in one piece. A file takes it, because a process that the command leaves behind would keep a pipe open.
fn run(job: Job) -> Result<()> {
    let Job { name, mut command } = job;
    let path = target().join(format!("{}.log", name.replace(['/', ' '], "-")));
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    let status = command.stdout(file.try_clone()?).stderr(file).status();
    let output = fs::read(&path)?;
    fs::remove_file(&path)?;
    let status = status.with_context(|| format!("cannot start {command:?}"))?;
    println!("-- {name}\n{}", String::from_utf8_lossy(&output).trim());
    if status.success() { Ok(()) } else { bail!("{name}: {status}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, script: &str) -> Job {
        Job { name: name.into(), command: crate::process::command("sh", &["-c", script]) }
    }

    #[test]
    fn of_the_programs_that_cargo_builds_those_with_tests_are_taken() {
        let message = |source: &str, executable: &str, is_test: bool| {
            let target = format!(r#""target":{{"kind":["bin"],"src_path":"{source}","test":true}}"#);
            let rest = format!(r#""profile":{{"opt_level":"0","test":{is_test}}},"executable":{executable}"#);
            format!(r#"{{"reason":"compiler-artifact","manifest_path":"/x/lab/Cargo.toml",{target},{rest}}}"#)
        };
        let source = root().join("crates/lab/src/main.rs").display().to_string();
        let found = test_program(&message(&source, r#""/x/deps/freestone-1""#, true)).expect("it has tests");
        assert_eq!(found.name, "crates/lab/src/main.rs");
        assert_eq!((found.path, found.folder), ("/x/deps/freestone-1".into(), "/x/lab".into()));
        assert!(test_program(&message(&source, r#""/x/freestone""#, false)).is_none(), "the command itself");
        assert!(test_program(&message(&source, "null", true)).is_none(), "a library");
        assert!(test_program(r#"{"reason":"build-finished","success":true}"#).is_none());
    }

    #[test]
    fn jobs_that_fail_are_named_and_the_others_run_all_the_same() {
        assert!(run_all(vec![job("one job", "echo; echo >&2"), job("another job", "exit 0")]).is_ok());
        let bad = |n: u32| job(&format!("bad job {n}"), &format!("exit {n}"));
        let failed = run_all(vec![bad(1), bad(2), job("a good job", "exit 0"), bad(3)]).unwrap_err().to_string();
        let mut names: Vec<_> = failed.strip_prefix("failed: ").expect("it names them").split(", ").collect();
        names.sort_unstable();
        assert_eq!(names, ["bad job 1", "bad job 2", "bad job 3"]);
    }
}
