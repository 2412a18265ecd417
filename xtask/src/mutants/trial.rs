//! Runs one test of a test program, with a mutant in force, and tells whether the test notices.
//!
//! What counts is processor time, and whether any thread of the program can run: on a machine that is busy with other things a test that is slow is not a
//! test that hangs.

use crate::process::root;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A test: its program, the folder it runs in, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub program: PathBuf,
    pub folder: String,
    pub name: String,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It passed.
    Passed,
    /// It failed, or took too long.
    Failed,
}

/// Resident memory, in pages of 4 KiB, above which a mutant is taken to allocate for ever.
const PAGES_MOST: u64 = 3 << 18;

/// How long all threads of a test may sleep at once: no test waits as long for anything but a wake-up.
const IDLE_MOST: Duration = Duration::from_secs(6);

impl Test {
    /// Runs the test with an environment variable set. It may use `seconds` of processor time, and four times as much may pass.
    pub(crate) fn run(&self, variable: (&str, &str), seconds: u64) -> Result<Ending> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -t {seconds}; ulimit -c 0; exec \"$@\"")).arg("sh").arg(&self.program);
        command.args(["--exact", &self.name, "--test-threads", "1"]).current_dir(root().join(&self.folder));
        command.env(variable.0, variable.1).env("RUST_BACKTRACE", "0").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?;
        ended(child, Duration::from_secs(4 * seconds))
    }
}

/// Waits for a test. Ends it after `most`, if all its threads sleep for long, or if it takes too much memory.
fn ended(mut child: Child, most: Duration) -> Result<Ending> {
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    let (begun, mut awake, mut pause) = (Instant::now(), Instant::now(), Duration::from_micros(500));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Ending::Passed } else { Ending::Failed });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
        if can_run(child.id()) {
            awake = Instant::now();
        }
        if begun.elapsed() > most || awake.elapsed() > IDLE_MOST || resident_pages(&folder) > PAGES_MOST {
            // The whole group: a test may have children.
            Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
            child.wait()?;
            return Ok(Ending::Failed);
        }
    }
}

/// Whether a thread of a process, or of another one of its group, runs, or waits for a processor or a disk.
fn can_run(leader: u32) -> bool {
    let is_awake = |process: &Path| {
        let Ok(tasks) = fs::read_dir(process.join("task")) else { return false };
        // A process that nobody has waited for yet is a zombie.
        tasks.flatten().any(|task| fields(&task.path()).is_some_and(|fields| !fields.starts_with(['S', 'Z'])))
    };
    let is_of_group = |process: &Path| {
        fields(process).is_some_and(|fields| fields.split(' ').nth(2).is_some_and(|group| *group == leader.to_string()))
    };
    if is_awake(&PathBuf::from(format!("/proc/{leader}"))) {
        return true;
    }
    let Ok(all) = fs::read_dir("/proc") else { return true };
    all.flatten().map(|entry| entry.path()).any(|process| is_of_group(&process) && is_awake(&process))
}

/// What the kernel says of a process or a thread behind its name, which is in brackets: state, parent, group.
fn fields(folder: &Path) -> Option<String> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, fields)| fields.to_owned())
}

fn resident_pages(folder: &Path) -> u64 {
    let statm = fs::read_to_string(folder.join("statm")).unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

/// Processor time of all processes that this one has started and waited for.
pub(crate) fn seconds_of_children() -> Result<f64> {
    let fields = fields(Path::new("/proc/self")).context("cannot read /proc/self/stat")?;
    // In user and kernel mode, in hundredths of a second on every Linux.
    let ticks = fields.split(' ').skip(13).take(2).map(|field| field.parse::<u64>().unwrap_or(0)).sum::<u64>();
    Ok(ticks as f64 / 100.0)
}
