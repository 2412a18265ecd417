//! `cargo xtask repeat`: runs test programs again and again beside busy processes, because no test may depend on what else the machine does.

use crate::process::target;
use crate::test_programs::{self, Program};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The arguments.
#[derive(clap::Args)]
pub(crate) struct Chosen {
    /// Only the tests of these packages.
    packages: Vec<String>,
    /// Only the test programs whose sources have such a name, `fork` for example.
    #[arg(long)]
    program: Vec<String>,
    /// How often each program runs.
    #[arg(long, default_value_t = 20)]
    times: u32,
    /// How many busy processes run beside it.
    #[arg(long, default_value_t = 4)]
    busy: usize,
}

/// A process that computes for ever, until this is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Result<Self> {
        Ok(Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().context("cannot start a busy process")?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder with copies of the programs, because a build meanwhile replaces them. They lie as cargo's do, below a folder with a lock file: a test of the
/// lab looks for that. Dropping it removes it.
struct Copies(PathBuf);

impl Copies {
    fn new() -> Result<Self> {
        let folder = target().join(format!("repeat-{}", std::process::id()));
        fs::create_dir_all(folder.join("deps"))?;
        fs::write(folder.join(".cargo-lock"), "")?;
        Ok(Self(folder))
    }

    fn add(&self, program: &Path) -> Result<PathBuf> {
        let copy = self.0.join("deps").join(program.file_name().context("a program has a name")?);
        fs::copy(program, &copy)?;
        Ok(copy)
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs each test program several times, and prints how often it passed. Fails if one failed.
pub(crate) fn run(chosen: &Chosen) -> Result<()> {
    let mut programs = test_programs::build(&chosen.packages)?;
    let is_chosen = |program: &Program| {
        let name = Path::new(&program.name).with_extension("");
        chosen.program.is_empty() || chosen.program.iter().any(|wanted| name.ends_with(wanted))
    };
    programs.retain(is_chosen);
    if programs.is_empty() {
        bail!("no test program is called {}", chosen.program.join(" or "));
    }
    let copies = Copies::new()?;
    for program in &mut programs {
        program.path = copies.add(&program.path)?;
    }
    let _busy = (0..chosen.busy).map(|_| Busy::start()).collect::<Result<Vec<_>>>()?;
    let mut n_wrong = 0;
    for program in &programs {
        let mut failures = Vec::new();
        for time in 0..chosen.times {
            let output = program.command().output()?;
            if !output.status.success() {
                failures.push((time + 1, String::from_utf8_lossy(&output.stdout).into_owned()));
            }
        }
        println!("{}: {} of {} passed", program.name, chosen.times as usize - failures.len(), chosen.times);
        for (time, text) in &failures {
            println!("FAILED the {time}. time:\n{text}");
        }
        n_wrong += usize::from(!failures.is_empty());
    }
    if n_wrong > 0 {
        bail!("{n_wrong} of {} test programs failed beside {} busy processes", programs.len(), chosen.busy);
    }
    println!("{} test programs passed {} times beside {} busy processes", programs.len(), chosen.times, chosen.busy);
    Ok(())
}
