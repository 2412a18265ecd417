//! The steps of `cargo xtask test` that run beside the others: one after the other, each in a process of its own.

use anyhow::{Context, Result, anyhow, bail};
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Those that run.
pub(super) struct Beside(Receiver<(Result<Output>, Duration)>);

impl Beside {
    /// Starts the first of the steps with these names.
    pub(super) fn start(names: impl Iterator<Item = &'static str>) -> Self {
        // Building the tests replaces this program's file; the process has the one that it was started from.
        let program = format!("/proc/{}/exe", std::process::id());
        let names: Vec<_> = names.collect();
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for name in names {
                let begun = Instant::now();
                let output = alone(&program, name);
                if sender.send((output, begun.elapsed())).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// Waits for the end of the next one; prints its output, and returns how long it took.
    pub(super) fn result(&mut self) -> (Result<()>, Duration) {
        match self.0.recv() {
            Ok((output, took)) => (output.and_then(|output| show(&output)), took),
            Err(_) => (Err(anyhow!("its thread panicked")), Duration::ZERO),
        }
    }
}

/// Runs a step in a process of its own, and returns what it printed.
fn alone(program: &str, name: &str) -> Result<Output> {
    // One stream for both outputs keeps their lines in order.
    let script = format!("exec '{program}' test --only {name} 2>&1");
    crate::process::command("sh", &["-c", &script]).output().context("cannot start the step")
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
