//! `cargo xtask test`: the steps, their order, their times.

use crate::run::{cargo, check, command, has, root, target_dir};
use crate::{hotpath, layers, programs};
use anyhow::{Result, bail};
use std::time::Instant;

/// A named step.
struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// In this order: what fails soonest first.
const STEPS: &[Step] = &[
    Step { name: "format", run: || cargo(&["fmt", "--all", "--check"]) },
    Step { name: "layers", run: layers::check_workspace },
    Step {
        name: "lints",
        run: || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]),
    },
    Step { name: "library", run: || crate::run::library().map(|_| ()) },
    Step { name: "tests", run: || cargo(&["test", "--quiet", "--workspace"]) },
    Step { name: "loom", run: loom },
    Step { name: "docs", run: docs },
    Step { name: "hotpath", run: || hotpath::run(false) },
    Step { name: "programs", run: programs::short },
    Step { name: "go", run: go },
];

/// Runs all steps, or one.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let steps: Vec<&Step> = STEPS.iter().filter(|step| only.is_none_or(|name| name == step.name)).collect();
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step `{}`; the steps are {}", only.unwrap_or_default(), names.join(", "));
    }
    for (done, step) in steps.iter().enumerate() {
        eprintln!("── {} ({} of {})", step.name, done + 1, steps.len());
        let start = Instant::now();
        if let Err(error) = (step.run)() {
            eprintln!("{error:#}");
            eprintln!("step `{0}` failed; run it alone with `cargo xtask test --only {0}`", step.name);
            println!("{done} passed, 1 failed");
            std::process::exit(1);
        }
        eprintln!("   {} passed in {:.1} s", step.name, start.elapsed().as_secs_f64());
    }
    println!("{} passed, 0 failed", steps.len());
    Ok(())
}

/// The loom models, each crate's own.
pub(crate) fn loom() -> Result<()> {
    for package in ["freestone-base", "freestone-pool"] {
        let mut models = command(env!("CARGO"), &["test", "--quiet", "--release", "--lib", "--package", package]);
        models.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target_dir().join("loom"));
        check(models)?;
    }
    Ok(())
}

/// Miri with strict provenance where memory is the test's own; the heap's window is exposed memory by its nature.
pub(crate) fn miri() -> Result<()> {
    check(command("rustup", &["component", "add", "--toolchain", "nightly", "miri", "rust-src"]))?;
    for (package, flags) in [
        ("freestone-base", "-Zmiri-strict-provenance"),
        ("freestone-tlsf", "-Zmiri-strict-provenance"),
        ("freestone-pool", "-Zmiri-strict-provenance"),
        ("freestone", "-Zmiri-permissive-provenance -Zmiri-ignore-leaks"),
    ] {
        let mut miri = command("cargo", &["+nightly", "miri", "test", "--lib", "--package", package]);
        miri.env("MIRIFLAGS", flags).env("CARGO_TARGET_DIR", target_dir().join("miri")).env_remove("RUSTUP_TOOLCHAIN");
        check(miri)?;
    }
    Ok(())
}

fn docs() -> Result<()> {
    let mut docs = command(env!("CARGO"), &["doc", "--quiet", "--workspace", "--no-deps"]);
    docs.env("RUSTDOCFLAGS", "--deny warnings");
    check(docs)
}

fn go() -> Result<()> {
    let script = root().join("go/check.sh");
    if !has("go") {
        eprintln!("   Go is not installed: the Go module is not tested here");
        return Ok(());
    }
    check(command("bash", &[&script.to_string_lossy()]))
}
