//! Platforms other than Linux on x86-64 with glibc: checks that everything compiles for them and, on request, runs the tests.
//!
//! Programs for another processor run under qemu's user emulation. It has its own `madvise`, `mincore` and `/proc` instead of the kernel's, and
//! threads race less than on a real machine: this tests the code, not the processor.

use crate::process::{cargo_for_platforms, has_target, is_installed, run};
use anyhow::{Result, bail};
use std::process::Command;

mod foreign;

/// A platform, and the tools that build and run its programs here.
struct Platform {
    target: &'static str,
    /// `None`: the tests of the C interface do not run, and Rust's own linker links programs, with the C library that the target brings along.
    c_compiler: Option<&'static str>,
    /// Whether the C compiler links Rust's programs as well. (musl-gcc cannot: those are static and position-independent.)
    links_rust: bool,
    /// The command that runs its programs; empty if this machine runs them.
    runner: &'static [&'static str],
    /// Arguments that make the runner emulate other sizes of OS pages.
    other_pages: &'static [&'static [&'static str]],
    /// Flags for the compiler when it builds the library for the C tests.
    library_flags: &'static str,
    /// The Debian packages that have the tools.
    packages: &'static str,
}

const PLATFORMS: [Platform; 4] = [
    Platform {
        target: "aarch64-unknown-linux-gnu",
        c_compiler: Some("aarch64-linux-gnu-gcc"),
        links_rust: true,
        runner: &["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
        other_pages: &[&["-p", "16384"], &["-p", "65536"]],
        library_flags: "",
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static",
    },
    Platform {
        target: "riscv64gc-unknown-linux-gnu",
        c_compiler: Some("riscv64-linux-gnu-gcc"),
        links_rust: true,
        runner: &["qemu-riscv64-static", "-L", "/usr/riscv64-linux-gnu"],
        other_pages: &[],
        library_flags: "",
        packages: "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user-static",
    },
    Platform {
        target: "x86_64-unknown-linux-musl",
        c_compiler: Some("musl-gcc"),
        links_rust: false,
        runner: &[],
        other_pages: &[],
        // Otherwise there is no shared library for musl.
        library_flags: "-C target-feature=-crt-static",
        packages: "musl-tools",
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        c_compiler: None,
        links_rust: false,
        runner: &["qemu-aarch64-static"],
        other_pages: &[],
        library_flags: "",
        packages: "qemu-user-static",
    },
];

/// Flags for the compiler where no C compiler links.
const SELF_CONTAINED: &str = "-C linker=rust-lld -C link-self-contained=yes";

/// The crates that programs use; the tools run on developers' machines only.
const PACKAGES: [&str; 6] =
    ["freestone-base", "freestone-os", "freestone-trace", "freestone-tlsf", "freestone-pool", "freestone"];

/// Tests of the C interface that need nothing but a C compiler and a way to run its programs.
const C_TESTS: [&str; 14] = [
    "conformance",
    "deep_binding",
    "elf",
    "everything_at_once",
    "guarded",
    "life_cycle",
    "memory",
    "misuse",
    "operators",
    "options",
    "pool",
    "seams",
    "threads",
    "tlsf",
];

impl Platform {
    /// `cargo test` for some packages, with the runner of the platform's programs.
    fn cargo_test(&self, packages: &[&str], pages: &[&str]) -> Command {
        let mut command = cargo_for_platforms(&["test"]);
        command.args(packages.iter().flat_map(|name| ["--package", name]));
        if !self.runner.is_empty() {
            let runner = [self.runner, pages].concat().join(" ");
            // The second is for tests that start their own program again (`crates/testkit/src/again.rs`).
            command.env(self.setting("RUNNER"), &runner).env("TEST_RUNNER", &runner);
        }
        command
    }

    /// The name of one of cargo's variables for the target.
    fn setting(&self, name: &str) -> String {
        format!("CARGO_TARGET_{}_{name}", self.target.to_uppercase().replace('-', "_"))
    }

    fn is_musl(&self) -> bool {
        self.target.ends_with("-musl")
    }

    /// Runs the tests of crates, as programs of the platform.
    fn test_crates(&self, packages: &[&str], pages: &[&str]) -> Result<()> {
        // One example is a shared library, which cargo cannot build for musl.
        if self.is_musl() {
            self.test_parts(packages, pages, &["--lib", "--tests"])?;
            return self.test_parts(packages, pages, &["--doc"]);
        }
        self.test_parts(packages, pages, &[])
    }

    /// As [`Platform::test_crates`], of what cargo's arguments `parts` name; of all without any.
    fn test_parts(&self, packages: &[&str], pages: &[&str], parts: &[&str]) -> Result<()> {
        let mut command = self.cargo_test(packages, pages);
        command.args(["--target", self.target]).args(parts);
        match self.c_compiler {
            Some(compiler) if self.links_rust => _ = command.env(self.setting("LINKER"), compiler),
            Some(_) => {}
            None => _ = command.env(self.setting("RUSTFLAGS"), SELF_CONTAINED).env("RUSTDOCFLAGS", SELF_CONTAINED),
        }
        run(&mut command)
    }

    /// Runs the tests of the C interface: they are this machine's, the programs they compile are the platform's.
    fn test_c(&self, pages: &[&str]) -> Result<()> {
        let Some(compiler) = self.c_compiler else { return Ok(()) };
        let mut command = self.cargo_test(&["freestone-capi"], pages);
        // A fork beside another thread's output hangs in musl itself (`crates/freestone/src/api/fork.rs`), and it has no `dlmopen`.
        let tests = C_TESTS.iter().filter(|&&name| !(name == "seams" && self.is_musl()));
        command.args(tests.flat_map(|name| ["--test", name]));
        command.env("CAPI_TEST_TARGET", self.target).env(self.setting("LINKER"), compiler);
        run(command.env(self.setting("RUSTFLAGS"), self.library_flags))
    }
}

/// Lints everything for the platforms whose standard library is installed.
pub(crate) fn check() -> Result<()> {
    for platform in PLATFORMS {
        let target = platform.target;
        if !has_target(platform.target) {
            println!("skipped {target}: `rustup target add {target}` is needed");
            continue;
        }
        let mut arguments = vec!["clippy", "--target", target, "--all-targets"];
        arguments.extend(PACKAGES.iter().chain(&["freestone-capi"]).flat_map(|name| ["--package", name]));
        arguments.extend(["--", "-D", "warnings"]);
        run(&mut cargo_for_platforms(&arguments))?;
        println!("ok {target}");
    }
    foreign::check()?;
    refuse()
}

/// Checks that the heap refuses a platform that it cannot run on with one error, which names the way out.
fn refuse() -> Result<()> {
    const TARGET: &str = "thumbv7em-none-eabi";
    if !has_target(TARGET) {
        println!("skipped {TARGET}: `rustup target add {TARGET}` is needed to see that the heap refuses it");
        return Ok(());
    }
    let output = cargo_for_platforms(&["check", "--package", "freestone", "--target", TARGET]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<_> = said.lines().filter(|line| line.starts_with("error")).collect();
    match errors[..] {
        [error, ..] if error.contains("#[cfg(not(target_os") && !said.contains("could not compile") => {
            println!("ok {TARGET}: {error}");
            Ok(())
        }
        _ => bail!("the heap has to refuse {TARGET} with one sentence; it says:\n{said}"),
    }
}

/// Runs the tests of the platforms named, or of all.
pub(crate) fn test(names: &[String]) -> Result<()> {
    let runners = foreign::RUNNERS.iter().map(|runner| runner.target);
    let known: Vec<_> = PLATFORMS.iter().map(|platform| platform.target).chain(runners).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no platform is called {unknown}; known are {}", known.join(", "));
    }
    for platform in PLATFORMS.iter().filter(|it| names.is_empty() || names.iter().any(|name| name == it.target)) {
        let missing = |tool: &&str| !is_installed(tool);
        if !has_target(platform.target) || platform.c_compiler.iter().chain(platform.runner.first()).any(missing) {
            bail!(
                "{0}: `rustup target add {0}` and `apt-get install {1}` are needed",
                platform.target,
                platform.packages
            );
        }
        println!("== {}", platform.target);
        platform.test_crates(&PACKAGES, &[])?;
        platform.test_c(&[])?;
        for pages in platform.other_pages {
            println!("== {}, {}", platform.target, pages.join(" "));
            platform.test_crates(&["freestone-os"], pages)?;
            platform.test_c(pages)?;
        }
    }
    for runner in foreign::RUNNERS.iter().filter(|it| names.is_empty() || names.iter().any(|name| name == it.target)) {
        if !runner.is_ready() {
            bail!("{0}: `rustup target add {0}` and `apt-get install {1}` are needed", runner.target, runner.packages);
        }
        runner.test()?;
    }
    Ok(())
}
