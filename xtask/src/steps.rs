//! `cargo xtask test`: the steps, those that fail soonest first.

use crate::process::{self, build_library, cargo, run};
use crate::{
    claims, counts, embedded, guide, hotpath, lab, layers, platforms, programs, proofs, published, schedules, sizes,
    tlsf_bound, tuning,
};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::process::Output;
use std::thread;
use std::time::Instant;

/// One step.
struct Step {
    name: &'static str,
    what: &'static str,
    /// The step from which on this one runs beside the others, until its turn. It may need only what is built by then. While one crate compiles
    /// or a test waits, a processor is idle.
    beside: Option<&'static str>,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 21] = [
    Step { name: "fmt", what: "formatting", beside: None, run: || run(&mut cargo(&["fmt", "--all", "--check"])) },
    Step {
        name: "layers",
        what: "no crate, module or file names one above it",
        beside: None,
        run: layers::check_workspace,
    },
    Step {
        name: "sizes",
        what: "no file, type or function too large, no new file that allows unsafe",
        beside: None,
        run: sizes::check,
    },
    Step { name: "claims", what: "documents and comments say what the code is", beside: None, run: check_claims },
    Step { name: "tuning", what: "docs/tuning.md matches the option table", beside: None, run: tuning::check },
    Step { name: "clippy", what: "lints, warnings are errors", beside: None, run: clippy },
    Step { name: "library", what: "the release library builds", beside: None, run: build_library },
    Step {
        name: "hotpath",
        what: "the hot paths are those of hotpath.golden",
        beside: None,
        run: || hotpath::run(false),
    },
    Step { name: "tests", what: "the tests of every crate, C conformance included", beside: None, run: tests },
    Step {
        name: "tlsf-bound",
        what: "TLSF's longest paths stay within their bounds",
        beside: Some("tests"),
        run: || tlsf_bound::check(0),
    },
    Step { name: "i686", what: "TLSF on 32 bits", beside: None, run: i686 },
    Step {
        name: "platforms",
        what: "lints for other platforms and microcontrollers, and a program under node and wine",
        beside: Some("tests"),
        run: || platforms::check().and_then(|()| embedded::check()),
    },
    Step {
        name: "published",
        what: "requirements are ranges, and the oldest compiler builds the published crates",
        beside: None,
        run: published::check,
    },
    Step { name: "loom", what: "models of concurrent code", beside: Some("tests"), run: proofs::loom },
    Step {
        name: "shuttle",
        what: "a few seconds of the whole heap under schedules",
        beside: Some("tests"),
        run: schedules::short,
    },
    Step { name: "doc", what: "documentation builds without a warning", beside: None, run: doc },
    Step { name: "go", what: "the Go module", beside: Some("tests"), run: go },
    Step { name: "programs", what: "real programs under preload", beside: Some("tests"), run: programs::run_short },
    Step {
        name: "guide",
        what: "what the guide shows runs, and the options it names exist",
        beside: None,
        run: guide::check,
    },
    Step {
        name: "count",
        what: "workloads take the instructions of counts.golden",
        beside: None,
        run: || counts::run(false),
    },
    // The last, because it measures times and nothing may run beside it.
    Step {
        name: "lab",
        what: "a peer builds and runs, and the lab sees no difference between equal allocators",
        beside: None,
        run: lab::check,
    },
];

fn check_claims() -> Result<()> {
    let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
    claims::check(&names)
}

fn clippy() -> Result<()> {
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // Lints link nothing: any file stands for libFuzzer, which would take a minute to compile.
    let manifest = process::root().join("fuzz/Cargo.toml");
    let mut fuzz = cargo(&["clippy", "--manifest-path", "fuzz/Cargo.toml", "--locked", "--", "-D", "warnings"]);
    run(fuzz.env("CUSTOM_LIBFUZZER_PATH", manifest).env("CARGO_TARGET_DIR", process::target()))
}

fn tests() -> Result<()> {
    run(&mut cargo(&["test", "--workspace"]))?;
    run(&mut cargo(&["test", "--package", "freestone-os", "--features", "fake"]))?;
    let features = "allocator-api2,allocator-api2-02";
    run(&mut cargo(&["test", "--package", "freestone", "--features", features, "--test", "allocator"]))
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
    let mut beside = BTreeMap::new();
    for (n_passed, step) in chosen.iter().enumerate() {
        for early in STEPS.iter().filter(|early| only.is_none() && early.beside == Some(step.name)) {
            beside.insert(early.name, thread::spawn(|| alone(early)));
        }
        println!("== {}: {}", step.name, step.what);
        let begun = Instant::now();
        let result = match beside.remove(step.name) {
            Some(early) => early.join().map_or_else(|_| bail!("its thread panicked"), |output| show(&output?)),
            None => (step.run)(),
        };
        if let Err(error) = result {
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

/// Runs a step in a process of its own, and returns what it printed.
fn alone(step: &Step) -> Result<Output> {
    let program = std::env::current_exe()?.into_os_string().into_string().ok().context("the program's path is text")?;
    // One stream for both outputs keeps their lines in order.
    let script = format!("'{program}' test --only {} 2>&1", step.name);
    Ok(process::command("sh", &["-c", &script]).output()?)
}

/// Prints what a step that ran in a process of its own printed, without the lines about the run.
fn show(output: &Output) -> Result<()> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = text.lines().collect();
    let is_ok = output.status.success();
    // The step's title first; last how long it took, how long all took, and the counts.
    lines
        .get(1..lines.len().saturating_sub(if is_ok { 3 } else { 0 }))
        .unwrap_or_default()
        .iter()
        .for_each(|line| println!("{line}"));
    if is_ok { Ok(()) } else { bail!("see above") }
}
