//! Runs loom, ThreadSanitizer, fuzzing, fault injection, the tests of the seams, and every short sequence of TLSF operations. (Miri is in
//! `interpreted.rs`, mutation in `mutants.rs`.)

use crate::process::{cargo, command, is_installed, leave_unoptimized, output, root, run, target};
use anyhow::{Context, Result, bail};
use std::fs;

/// Runs the loom models of `base` and `pool`, and those of the heap's protocols, with the orderings that its source states. They have a target folder
/// of their own: another `cfg` would rebuild everything else.
pub(crate) fn loom() -> Result<()> {
    let packages = ["--package", "freestone-base", "--package", "freestone-pool"];
    let mut command = cargo(&["test", "--release", "--lib", "--test", "protocols"]);
    command.args(packages).env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target().join("loom"));
    // The models are small: what link-time optimisation would save while they run is less than it costs.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    // What the models themselves do not run in takes longer to optimise than it runs.
    let around = ["proptest", "regex-automata", "regex-syntax", "tracing-subscriber", "rand", "chacha20", "num-traits"];
    leave_unoptimized(&mut command, &around);
    run(command.env("CARGO_PROFILE_RELEASE_DEBUG", "0"))
}

/// Runs the tests that use threads under ThreadSanitizer, without suppressions, with a standard library built for it.
pub(crate) fn tsan() -> Result<()> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    for (package, target_of_crate, filter) in WITH_THREADS {
        println!("== tsan: {package} {}", target_of_crate.join(" "));
        let mut command = command("rustup", &["run", "nightly", "cargo", "test", "-Zbuild-std", "--target", TARGET]);
        command.args(["--package", package]).args(target_of_crate).arg("--").args(filter);
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("RUSTFLAGS", "-Zsanitizer=thread --cfg tsan")
            .env("PROPTEST_CASES", "16");
        run(command.env("TSAN_OPTIONS", "halt_on_error=1").env("CARGO_TARGET_DIR", target().join("tsan")))
            .with_context(|| {
                format!(
                    "{package}: a test failed, a data race was reported, or the build failed: see above. Building needs the nightly \
                     toolchain with rust-src"
                )
            })?;
    }
    Ok(())
}

/// Packages whose tests use threads, the targets that contain these tests, and filters: a test runs whose name contains one of them, or all without any.
const WITH_THREADS: [(&str, &[&str], &[&str]); 8] = [
    ("freestone-base", &["--lib"], &[]),
    (
        "freestone-os",
        &["--lib"],
        &["futex", "inside", "linux::purge::tests::threads_", "own_stack", "thread", "weak_symbols"],
    ),
    ("freestone-bounded", &["--lib"], &["last_error"]),
    ("freestone-pool", &["--lib", "--test", "threads", "--test", "typed"], &[]),
    ("freestone-tlsf", &["--lib"], &["sharded"]),
    ("freestone-tlsf", &["--test", "allocator"], &[]),
    (
        "freestone",
        &["--lib"],
        &[
            "api::fork",
            "api::freed_early",
            "api::live",
            "api::local_heap",
            "api::options",
            "api::profile_control",
            "page::freed",
            "page::large_cache",
            "page::limits",
            "page::purging",
            "page::tests",
            "stats::live_page",
            "thread::idle::tests::again",
            "thread::orphaned",
        ],
    ),
    ("freestone", &["--test", "threads", "--test", "explicit_heaps", "--test", "everything_at_once"], &[]),
];

/// Runs the tests of the seams (`crates/capi/tests/seams.rs`): their long forms, or with settings of the machine changed.
pub(crate) fn seams(long: bool, machine: bool) -> Result<()> {
    let mut command = cargo(&["test", "--package", "freestone-capi", "--test", "seams", "--", "--nocapture"]);
    if long {
        command.env("SEAMS_LONG", "1");
    }
    if machine {
        command.env("SEAMS_MACHINE", "1");
    }
    run(&mut command)
}

/// The targets that run without a sanitizer; their headers say why.
const WITHOUT_SANITIZER: [&str; 2] = ["c_interface", "heap"];

/// Fuzzes one target, or each in turn. A target starts with the inputs in `fuzz/seeds` and with those that earlier runs found
/// (`fuzz/corpus`, which is not in the tree).
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
        bail!("no fuzz target is called {name}; known are: {}", targets.trim().replace('\n', ", "));
    }
    let limit = format!("-max_total_time={seconds}");
    for name in targets.lines().filter(|target| chosen.is_none_or(|name| name == *target)) {
        println!("== fuzz: {name}, {seconds} s");
        let sanitizer = if WITHOUT_SANITIZER.contains(&name) { "none" } else { "address" };
        let (corpus, seeds) = (format!("fuzz/corpus/{name}"), format!("fuzz/seeds/{name}"));
        fs::create_dir_all(root().join(&corpus))?;
        // The fuzzer writes new inputs into the first folder.
        let arguments = ["run", "--sanitizer", sanitizer, name, &corpus, &seeds, "--", &limit];
        run(cargo_fuzz(&arguments).env("CARGO_TARGET_DIR", target().join("fuzz")))?;
    }
    Ok(())
}

/// Runs the tests in which calls of the kernel fail in turn; `long` plays ten times as many streams.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::files_below;
    use crate::source::folder_of;
    use std::path::Path;

    /// The test modules of the crate in `folder` that use threads.
    fn with_threads(folder: &Path) -> Vec<String> {
        let uses_threads = |file: &String| {
            let text = fs::read_to_string(folder.join(file)).expect("a source");
            text.contains("thread::scope(") || text.contains("thread::spawn(")
        };
        let files = files_below(folder).expect("a folder of sources");
        let module = |file: String| file.trim_end_matches(".rs").replace('/', "::");
        let is_test = |module: &String| module.split("::").any(|name| name == "tests");
        files.into_iter().filter(uses_threads).map(module).filter(is_test).collect()
    }

    #[test]
    fn every_unit_test_with_threads_runs_under_the_sanitizer() {
        let is_covered = |package: &str, module: &str| {
            WITH_THREADS.iter().any(|(covered, targets, filters)| {
                let matches = |filter: &&str| module.contains(filter) || filter.starts_with(module);
                *covered == package && targets.contains(&"--lib") && (filters.is_empty() || filters.iter().any(matches))
            })
        };
        let mut n_found = 0;
        for name in ["base", "os", "bounded", "pool", "tlsf", "freestone"] {
            let package = if name == "freestone" { name.to_owned() } else { format!("freestone-{name}") };
            let found = with_threads(&root().join(folder_of(name)).join("src"));
            found.iter().for_each(|module| assert!(is_covered(&package, module), "{package}: {module}"));
            n_found += found.len();
        }
        assert!(n_found > 15, "{n_found}");
    }
}
