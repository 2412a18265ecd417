//! The long proofs: loom, Miri, fuzzing, fault injection, every short sequence of TLSF operations.

use crate::process::{cargo, command, is_installed, output, root, run, target};
use anyhow::{Context, Result, bail};
use std::fs;

/// Crates that have loom models. `pool` joins as soon as it names loom in its manifest.
const MODELLED: [&str; 2] = ["base", "pool"];

/// Runs the loom models in a target folder of their own: another `cfg` would rebuild everything else.
pub(crate) fn loom() -> Result<()> {
    for name in MODELLED {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"))?;
        if !manifest.contains("loom") {
            println!("{name} has no models");
            continue;
        }
        let package = format!("freestone-{name}");
        let mut command = cargo(&["test", "--release", "--lib", "--package", &package]);
        if name == "base" {
            // The heap's own protocols, with the orderings that its source states.
            command.args(["--test", "protocols"]);
        }
        run(command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target().join("loom")))?;
    }
    Ok(())
}

/// Crates that Miri can run.
const INTERPRETED: [&str; 4] = ["freestone-base", "freestone-tlsf", "freestone-pool", "freestone"];

/// Runs Miri with strict provenance over what makes no system call; the heap over the fake kernel. All of it, or one crate.
pub(crate) fn miri(chosen: Option<&str>) -> Result<()> {
    let packages: Vec<_> = INTERPRETED.iter().filter(|name| chosen.is_none_or(|chosen| chosen == **name)).collect();
    if packages.is_empty() {
        bail!("Miri runs {}: name one of them, or none for all", INTERPRETED.join(", "));
    }
    let components = output(&mut command("rustup", &["+nightly", "component", "list", "--installed"]))
        .context("Miri needs the nightly toolchain: `rustup toolchain install nightly`")?;
    if !components.contains("miri") {
        run(&mut command("rustup", &["+nightly", "component", "add", "miri", "rust-src"]))?;
    }
    for package in packages {
        println!("== miri: {package}");
        let mut command =
            command("rustup", &["run", "nightly", "cargo", "miri", "test", "--tests", "--package", package]);
        // The heap's window is an address agreed with the kernel: `base::ptr` exposes it.
        let provenance = if *package == "freestone" { "permissive" } else { "strict" };
        let flags = format!("-Zmiri-{provenance}-provenance -Zmiri-disable-isolation");
        command.env("MIRIFLAGS", flags).env_remove("RUSTUP_TOOLCHAIN");
        run(command.env("CARGO_TARGET_DIR", target().join("miri")).env("PROPTEST_CASES", "4"))?;
    }
    Ok(())
}

/// The targets that a sanitizer cannot help, as their headers say.
const WITHOUT_SANITIZER: [&str; 2] = ["c_interface", "heap"];

/// Fuzzes one target, or each in turn.
pub(crate) fn fuzz(chosen: Option<&str>, seconds: u32) -> Result<()> {
    if !is_installed("cargo-fuzz") {
        bail!("fuzzing needs cargo-fuzz: `cargo install cargo-fuzz`");
    }
    let cargo_fuzz = |arguments: &[&str]| {
        let mut command = command("rustup", &[&["run", "nightly", "cargo", "fuzz"], arguments].concat());
        command.env_remove("RUSTUP_TOOLCHAIN");
        command
    };
    let targets = output(&mut cargo_fuzz(&["list"]))
        .context("fuzzing needs the nightly toolchain: `rustup toolchain install nightly`")?;
    if let Some(name) = chosen.filter(|name| !targets.lines().any(|target| target == *name)) {
        bail!("no fuzz target is called {name}; there is: {}", targets.trim().replace('\n', ", "));
    }
    let limit = format!("-max_total_time={seconds}");
    for name in targets.lines().filter(|target| chosen.is_none_or(|name| name == *target)) {
        println!("== fuzz: {name}, {seconds} s");
        let sanitizer = if WITHOUT_SANITIZER.contains(&name) { "none" } else { "address" };
        let arguments = ["run", "--sanitizer", sanitizer, name, "--", &limit];
        run(cargo_fuzz(&arguments).env("CARGO_TARGET_DIR", target().join("fuzz")))?;
    }
    Ok(())
}

/// Runs the tests that fail the kernel's calls in turn; `long` plays ten times as many streams.
pub(crate) fn faults(long: bool) -> Result<()> {
    let cases = if long { "2560" } else { "256" };
    let features = ["test", "--release", "--package", "freestone-os", "--features", "fake"];
    run(cargo(&features).env("PROPTEST_CASES", cases))?;
    run(cargo(&["test", "--release", "--package", "freestone"]).env("PROPTEST_CASES", cases))
}

/// Plays every operation sequence of `length` on the smallest TLSF heaps.
pub(crate) fn tlsf_sequences(length: u32) -> Result<()> {
    let test = ["test", "--release", "--package", "freestone-tlsf", "--test", "sequences", "--", "--nocapture"];
    run(cargo(&test).env("TLSF_SEQUENCE_LENGTH", length.to_string()))
}
