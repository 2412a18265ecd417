//! `cargo xtask test`: the steps, in the order of how soon they fail.

use crate::process::{self, build_library, cargo, output, run};
use crate::{claims, hotpath, lab, layers, platforms, programs, proofs, schedules, sizes, tlsf_bound, tuning};
use anyhow::{Result, bail};
use std::time::Instant;

/// One step.
struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 17] = [
    Step { name: "fmt", what: "formatting", run: || run(&mut cargo(&["fmt", "--all", "--check"])) },
    Step { name: "layers", what: "no crate, module or file names one above it", run: layers::check_workspace },
    Step {
        name: "sizes",
        what: "no file, type or function too large, no new file that allows unsafe",
        run: sizes::check,
    },
    Step { name: "claims", what: "documents and comments say what the code is", run: check_claims },
    Step { name: "tuning", what: "docs/tuning.md matches the option table", run: tuning::check },
    Step { name: "clippy", what: "lints, warnings are errors", run: clippy },
    Step { name: "library", what: "the release library builds", run: build_library },
    Step { name: "hotpath", what: "the hot paths are those of hotpath.golden", run: || hotpath::run(false) },
    Step { name: "tlsf-bound", what: "TLSF's longest paths stay within their bounds", run: || tlsf_bound::check(0) },
    Step { name: "tests", what: "the tests of every crate, C conformance included", run: tests },
    Step { name: "i686", what: "TLSF on 32 bits", run: i686 },
    Step { name: "platforms", what: "lints for AArch64 and musl", run: platforms::check },
    Step { name: "loom", what: "models of concurrent code", run: proofs::loom },
    Step { name: "shuttle", what: "a few seconds of the whole heap under schedules", run: schedules::short },
    Step { name: "doc", what: "documentation builds without a warning", run: doc },
    Step {
        name: "lab",
        what: "a peer builds and runs, and the lab sees no difference between equal allocators",
        run: lab::check,
    },
    Step { name: "go", what: "the Go module", run: go },
];

/// The last step, because it takes longest.
const PROGRAMS: Step = Step { name: "programs", what: "real programs under preload", run: programs::run_short };

fn check_claims() -> Result<()> {
    let names: Vec<_> = STEPS.iter().chain([&PROGRAMS]).map(|step| step.name).collect();
    claims::check(&names)
}

fn clippy() -> Result<()> {
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    run(&mut cargo(&["clippy", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--", "-D", "warnings"]))
}

fn tests() -> Result<()> {
    run(&mut cargo(&["test", "--workspace"]))?;
    run(&mut cargo(&["test", "--package", "freestone-os", "--features", "fake"]))
}

/// Runs TLSF's tests as a 32-bit program, where one can be built.
fn i686() -> Result<()> {
    const TARGET: &str = "i686-unknown-linux-gnu";
    let installed = output(&mut process::command("rustup", &["target", "list", "--installed"])).unwrap_or_default();
    if !installed.contains(TARGET) || run(&mut process::command("gcc", &["-m32", "-print-libgcc-file-name"])).is_err() {
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
    let steps: Vec<&Step> = STEPS.iter().chain([&PROGRAMS]).collect();
    if list {
        steps.iter().for_each(|step| println!("{:10} {}", step.name, step.what));
        return Ok(());
    }
    let chosen: Vec<_> = steps.iter().filter(|step| only.is_none_or(|name| name == step.name)).collect();
    if chosen.is_empty() {
        bail!("there is no step of that name; `cargo xtask test --list` lists them");
    }
    let started = Instant::now();
    for (n_passed, step) in chosen.iter().enumerate() {
        println!("== {}: {}", step.name, step.what);
        let begun = Instant::now();
        if let Err(error) = (step.run)() {
            println!("FAILED {}: {error:#}", step.name);
            println!("to run only this step: cargo xtask test --only {}", step.name);
            println!("{n_passed} passed, 1 failed");
            std::process::exit(1);
        }
        println!("ok {} ({:.1} s)", step.name, begun.elapsed().as_secs_f64());
    }
    println!("all steps together: {:.0} s", started.elapsed().as_secs_f64());
    println!("{} passed, 0 failed", chosen.len());
    Ok(())
}
