//! Microcontrollers: lints the crates without an operating system for their processors, and runs TLSF and a pool on two emulated machines.

use crate::process::{cargo_for_platforms, command, has_target, is_installed, platforms_target, root, run};
use anyhow::{Result, bail};
use std::process::Command;

/// Processors without atomics of 64 bits: a Cortex-M0 without compare-and-exchange, a Cortex-M4, a RISC-V with 32 bits.
const TARGETS: [&str; 3] = ["thumbv6m-none-eabi", "thumbv7em-none-eabi", "riscv32imac-unknown-none-elf"];

/// The crates for them.
const PACKAGES: [&str; 3] = ["freestone-base", "freestone-tlsf", "freestone-pool"];

/// qemu's names of machines, and their processors.
const MACHINES: [(&str, &str); 2] = [("microbit", "thumbv6m-none-eabi"), ("mps2-an386", "thumbv7em-none-eabi")];

const EMULATOR: &str = "qemu-system-arm";

/// Lints the crates for the targets whose `core` is installed.
pub(crate) fn check() -> Result<()> {
    for target in TARGETS {
        if !has_target(target) {
            println!("skipped {target}: `rustup target add {target}` is needed");
            continue;
        }
        let mut arguments = vec!["clippy", "--target", target];
        arguments.extend(PACKAGES.iter().flat_map(|name| ["--package", name]));
        arguments.extend(["--", "-D", "warnings"]);
        run(&mut cargo_for_platforms(&arguments))?;
        println!("ok {target}");
    }
    Ok(())
}

/// Cargo, for the program that runs on the machines. It builds beside the other targets.
fn program(arguments: &[&str]) -> Command {
    let mut command = cargo_for_platforms(arguments);
    command.current_dir(root().join("embedded"));
    command
}

/// Lints the program, builds it for each machine, and runs it there.
pub(crate) fn test() -> Result<()> {
    if !TARGETS.into_iter().all(has_target) || !is_installed(EMULATOR) {
        bail!("`rustup target add {}` and `apt-get install {EMULATOR}` are needed", TARGETS.join(" "));
    }
    run(&mut program(&["fmt", "--check"]))?;
    for (machine, processor) in MACHINES {
        println!("== {machine}, {processor}");
        let arguments = ["--release", "--locked", "--target", processor];
        run(program(&["clippy"]).args(arguments).args(["--", "-D", "warnings"]))?;
        run(program(&["build"]).args(arguments))?;
        let image = platforms_target().join(processor).join("release/freestone-embedded");
        // An instruction takes 2^10 ns of the emulated clock, so that the machine's timer counts instructions.
        let options = ["-nographic", "-semihosting-config", "enable=on,target=native", "-icount", "shift=10"];
        run(command(EMULATOR, &["-machine", machine]).args(options).arg("-kernel").arg(image))?;
    }
    Ok(())
}
