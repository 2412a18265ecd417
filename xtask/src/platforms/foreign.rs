//! Platforms other than Linux: the heap's crates compile for each whose standard library is installed; a program runs as one of WebAssembly under node, and
//! as one of Windows under wine, where these are installed; on request so do the tests.

use crate::process::{
    cargo_for_platforms, command, has_target, is_installed, output, platforms_target, root, run, target,
};
use anyhow::{Result, bail};
use std::process::Command;

/// Targets that the heap compiles for.
const COMPILED: [&str; 12] = [
    "wasm32-wasip1",
    "wasm32-unknown-unknown",
    "x86_64-pc-windows-gnu",
    "x86_64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "aarch64-apple-ios",
    "x86_64-unknown-freebsd",
    "aarch64-linux-android",
    "aarch64-unknown-linux-musl",
    "riscv64gc-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
];

/// The program that is run: `crates/freestone/examples/any_platform.rs`.
const PROGRAM: &str = "any_platform";

/// The program that measures a workload beside the heap that programs have there without Freestone.
const MEASUREMENT: &str = "beside_the_system";

/// What runs the programs of a target.
pub(crate) struct Runner {
    /// The target.
    pub(crate) target: &'static str,
    /// Programs that have to be installed.
    tools: &'static [&'static str],
    /// The Debian packages that have them.
    pub(crate) packages: &'static str,
    /// How a program's name ends.
    extension: &'static str,
    /// Arguments of `cargo test` that choose what makes sense there.
    tests: &'static [&'static str],
}

/// All of them.
pub(crate) const RUNNERS: [Runner; 2] = [
    Runner {
        target: "wasm32-wasip1",
        tools: &["node"],
        packages: "nodejs",
        extension: ".wasm",
        // Those that start no thread.
        tests: &[
            "--features",
            "allocator-api2,allocator-api2-02",
            "--test",
            "allocator",
            "--test",
            "door",
            "--test",
            "one_memory",
        ],
    },
    Runner {
        target: "x86_64-pc-windows-gnu",
        tools: &["wine", "x86_64-w64-mingw32-gcc"],
        packages: "wine64 wine gcc-mingw-w64-x86-64",
        extension: ".exe",
        tests: &["--lib", "--test", "threads", "--test", "explicit_heaps", "--test", "door", "--test", "plugin"],
    },
];

impl Runner {
    /// Whether programs of the target can be built and run here.
    pub(crate) fn is_ready(&self) -> bool {
        has_target(self.target) && self.tools.iter().all(|tool| is_installed(tool))
    }

    /// The command that runs a program, before the program's name.
    fn words(&self) -> Vec<String> {
        match self.tools {
            ["node", ..] => {
                let script = root().join("xtask/src/platforms/wasi.mjs");
                vec!["node".into(), "--no-warnings".into(), script.display().to_string()]
            }
            _ => vec!["wine".into()],
        }
    }

    /// What runs programs of Windows needs a library beside them, and a folder of its own for its settings.
    fn prepare(&self, command: &mut Command) -> Result<()> {
        if self.tools.contains(&"wine") {
            let folder = target().join("wine");
            std::fs::create_dir_all(&folder)?;
            let library = folder.join("bcryptprimitives.dll");
            let source = root().join("xtask/src/platforms/bcryptprimitives.c");
            let mut compile = crate::process::command("x86_64-w64-mingw32-gcc", &["-O1", "-shared", "-o"]);
            run(compile.arg(&library).arg(source).arg("-ladvapi32"))?;
            command.env("WINEPREFIX", folder.join("prefix")).env("WINEDEBUG", "-all").env("WINEPATH", &folder);
        }
        Ok(())
    }

    /// Builds an example of the heap, in one of cargo's profiles, and runs it; returns what it printed.
    fn run_example(&self, name: &str, profile: &str) -> Result<String> {
        let build =
            ["build", "--package", "freestone", "--example", name, "--target", self.target, "--profile", profile];
        run(&mut cargo_for_platforms(&build))?;
        let folder = if profile == "dev" { "debug" } else { profile };
        let examples = platforms_target().join(self.target).join(folder).join("examples");
        let words = self.words();
        let mut command = command(&words[0], &[]);
        command.args(&words[1..]).arg(examples.join(format!("{name}{}", self.extension)));
        self.prepare(&mut command)?;
        output(&mut command)
    }

    /// Builds the program and runs it.
    fn run_program(&self) -> Result<()> {
        let said = self.run_example(PROGRAM, "dev")?;
        if !said.contains("Freestone serves this program") {
            bail!("{}: {PROGRAM} has said: {said}", self.target);
        }
        println!("ok {} under {}: {}", self.target, self.tools[0], said.trim());
        Ok(())
    }

    /// Runs the tests that make sense as programs of the target, and measures.
    pub(crate) fn test(&self) -> Result<()> {
        println!("== {}", self.target);
        self.run_program()?;
        // A library that a test loads, where one can be loaded.
        let build = ["build", "--package", "freestone", "--example", "plugin", "--target", self.target];
        run(&mut cargo_for_platforms(&build))?;
        let mut command = cargo_for_platforms(&["test", "--package", "freestone", "--target", self.target]);
        self.prepare(&mut command)?;
        let variable = format!("CARGO_TARGET_{}_RUNNER", self.target.to_uppercase().replace('-', "_"));
        run(command.args(self.tests).env(variable, self.words().join(" ")))?;
        println!("measured under {}: {}", self.tools[0], self.run_example(MEASUREMENT, "release")?.trim());
        Ok(())
    }
}

/// Compiles the heap for the platforms whose standard library is installed, and runs the program where that can be done.
pub(crate) fn check() -> Result<()> {
    for target in COMPILED {
        if !has_target(target) {
            println!("skipped {target}: `rustup target add {target}` is needed");
            continue;
        }
        let arguments =
            ["clippy", "--package", "freestone-os", "--package", "freestone", "--target", target, "--", "-D"];
        run(cargo_for_platforms(&arguments).arg("warnings"))?;
        println!("ok {target} compiles");
    }
    for runner in RUNNERS {
        if runner.is_ready() {
            runner.run_program()?;
        } else {
            println!("skipped running {}: `apt-get install {}` is needed", runner.target, runner.packages);
        }
    }
    Ok(())
}
