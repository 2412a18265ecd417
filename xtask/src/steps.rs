//! `cargo xtask test`: the steps, those that fail soonest first.

use crate::process::{self, build_library, cargo, run};
use crate::test_programs::{self, Job};
use crate::{
    claims, counts, embedded, guide, hotpath, lab, layers, platforms, programs, proofs, published, schedules, sizes,
    tlsf_bound, tuning,
};
use anyhow::{Result, bail};
use beside::Beside;
use std::time::Instant;

mod beside;

/// One step.
struct Step {
    name: &'static str,
    what: &'static str,
    /// Whether it runs beside the others from the start, after those before it that do. While one crate compiles or a test waits, a processor is idle.
    /// It has a target folder of its own, or needs only what is built there by then: two builds in one folder wait for each other.
    beside: bool,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 21] = [
    Step { name: "fmt", what: "formatting", beside: false, run: || run(&mut cargo(&["fmt", "--all", "--check"])) },
    Step {
        name: "layers",
        what: "no crate, module or file names one above it",
        beside: false,
        run: layers::check_workspace,
    },
    Step {
        name: "sizes",
        what: "no file, type or function too large, no new file that allows unsafe",
        beside: false,
        run: sizes::check,
    },
    Step { name: "claims", what: "documents and comments say what the code is", beside: false, run: check_claims },
    Step { name: "tuning", what: "docs/tuning.md matches the option table", beside: false, run: tuning::check },
    Step { name: "clippy", what: "lints, warnings are errors", beside: false, run: clippy },
    Step { name: "library", what: "the release library and the tools build", beside: false, run: build_release },
    Step {
        name: "hotpath",
        what: "the hot paths are those of hotpath.golden",
        beside: false,
        run: || hotpath::run(false),
    },
    Step {
        name: "tlsf-bound",
        what: "TLSF's longest paths stay within their bounds",
        beside: false,
        run: || tlsf_bound::check(0),
    },
    Step { name: "tests", what: "the tests of every crate, C conformance included", beside: false, run: tests },
    Step { name: "i686", what: "TLSF on 32 bits", beside: false, run: i686 },
    Step { name: "doc", what: "documentation builds without a warning", beside: false, run: doc },
    Step {
        name: "guide",
        what: "what the guide shows runs, and the options it names exist",
        beside: false,
        run: guide::check,
    },
    Step { name: "loom", what: "models of concurrent code", beside: true, run: proofs::loom },
    Step {
        name: "shuttle",
        what: "a few seconds of the whole heap under schedules",
        beside: true,
        run: schedules::short,
    },
    Step { name: "go", what: "the Go module", beside: true, run: go },
    Step {
        name: "platforms",
        what: "lints for other platforms and microcontrollers, and a program under node and wine",
        beside: true,
        run: || platforms::check().and_then(|()| embedded::check()),
    },
    Step {
        name: "published",
        what: "requirements are ranges, and the oldest compiler builds the published crates",
        beside: true,
        run: published::check,
    },
    Step { name: "programs", what: "real programs under preload", beside: true, run: programs::run_short },
    Step {
        name: "count",
        what: "workloads take the instructions of counts.golden",
        beside: true,
        run: || counts::run(false),
    },
    // The last, because it measures times and nothing may run beside it.
    Step {
        name: "lab",
        what: "a peer builds and runs, and the lab sees no difference between equal allocators",
        beside: false,
        run: lab::check,
    },
];

fn check_claims() -> Result<()> {
    let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
    claims::check(&names)
}

fn clippy() -> Result<()> {
    run(cargo(&["clippy"]).args(test_programs::ALL).args(["--all-targets", "--", "-D", "warnings"]))?;
    // Lints link nothing: any file stands for libFuzzer, which would take a minute to compile.
    let manifest = process::root().join("fuzz/Cargo.toml");
    let mut fuzz = cargo(&["clippy", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--", "-D", "warnings"]);
    run(fuzz.env("CUSTOM_LIBFUZZER_PATH", manifest).env("CARGO_TARGET_DIR", process::target()))
}

/// Builds what later steps use, so that none waits for another one's build.
fn build_release() -> Result<()> {
    build_library()?;
    for package in ["freestone-memory", "freestone-lab"] {
        run(&mut cargo(&["build", "--release", "--package", package]))?;
    }
    Ok(())
}

/// The test programs that take longest, which run first.
const LONGEST: [&str; 7] = [
    "crates/freestone/src/lib.rs",
    "crates/lab/tests/hard_times.rs",
    "crates/capi/tests/hardened.rs",
    "crates/lab/tests/leaks.rs",
    "crates/capi/tests/install.rs",
    "crates/lab/tests/command_line.rs",
    "crates/capi/tests/seams.rs",
];

fn tests() -> Result<()> {
    let mut programs = test_programs::build(&[])?;
    programs.sort_by_key(|program| LONGEST.iter().position(|name| *name == program.name).unwrap_or(LONGEST.len()));
    let mut jobs: Vec<_> =
        programs.iter().map(|program| Job { name: program.name.clone(), command: program.command() }).collect();
    let mut examples = cargo(&["test", "--doc", "--no-fail-fast"]);
    examples.args(test_programs::ALL);
    jobs.push(Job { name: "examples in comments".into(), command: examples });
    test_programs::run_all(jobs)
}

/// Runs TLSF's tests as a 32-bit program, where one can be built.
fn i686() -> Result<()> {
    const TARGET: &str = "i686-unknown-linux-gnu";
    // gcc answers with a path if it has the file, else with the name.
    let start =
        process::output(&mut process::command("gcc", &["-m32", "-print-file-name=Scrt1.o"])).unwrap_or_default();
    if !process::has_target(TARGET) || !start.contains('/') {
        println!("skipped: `rustup target add {TARGET}` and a 32-bit C library (gcc-multilib) are needed");
        return Ok(());
    }
    run(&mut cargo(&["test", "--package", "freestone-tlsf", "--target", TARGET]))
}

fn doc() -> Result<()> {
    run(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn go() -> Result<()> {
    let script = process::root().join("go/check.sh");
    if !script.exists() {
        println!("no go/check.sh here: nothing to check");
        return Ok(());
    }
    if !process::is_installed("go") {
        println!("skipped: no Go toolchain; install golang-go to check the module in go/");
        return Ok(());
    }
    run(&mut process::command("sh", &["go/check.sh"]))
}

/// Runs all steps, or one.
pub(crate) fn test(only: Option<&str>, list: bool) -> Result<()> {
    if list {
        STEPS.iter().for_each(|step| println!("{:10} {}", step.name, step.what));
        return Ok(());
    }
    let chosen: Vec<_> = STEPS.iter().filter(|step| only.is_none_or(|name| name == step.name)).collect();
    if chosen.is_empty() {
        bail!("there is no step of that name; `cargo xtask test --list` lists them");
    }
    let started = Instant::now();
    let mut beside = Beside::start(chosen.iter().filter(|step| only.is_none() && step.beside).map(|step| step.name));
    for (n_passed, step) in chosen.iter().enumerate() {
        println!("== {}: {}", step.name, step.what);
        let begun = Instant::now();
        let (result, took) = if only.is_none() && step.beside {
            beside.result()
        } else {
            let result = (step.run)();
            (result, begun.elapsed())
        };
        if let Err(error) = result {
            println!("FAILED {}: {error:#}", step.name);
            println!("to run only this step: cargo xtask test --only {}", step.name);
            println!("{n_passed} passed, 1 failed");
            std::process::exit(1);
        }
        println!("ok {} ({:.1} s)", step.name, took.as_secs_f64());
    }
    println!("all steps together: {:.0} s", started.elapsed().as_secs_f64());
    println!("{} passed, 0 failed", chosen.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_run_first_are_there() {
        for name in LONGEST {
            assert!(process::root().join(name).is_file(), "{name} does not exist");
        }
    }

    #[test]
    fn nothing_runs_beside_the_last_step() {
        assert!(STEPS.last().is_some_and(|step| step.name == "lab" && !step.beside));
    }
}
