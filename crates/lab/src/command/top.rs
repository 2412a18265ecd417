//! `freestone top`: the memory of a running process, live: as a view on the terminal, or as text or JSON for scripts.
//!
//! ```text
//!  target ─▶ sampler ─▶ view_state ─▶ view        keys and states in, a screen out
//!                └────▶ once                      text, or JSON lines
//! ```

mod keys;
mod once;
mod sampler;
mod screen;
mod target;
#[cfg(test)]
mod testing;
mod view;
mod view_state;

use crate::printing;
use crate::process::command_file::Refusal;
use crate::process::interrupt;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Duration;
use target::Target;

/// The options of `freestone top`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds between two samples
    #[arg(short, long, value_name = "SECONDS", default_value_t = 0.5, value_parser = seconds)]
    delay: f64,
    /// Print one sample as text and end, without a terminal; the sample is taken after the delay, or when the process ends
    #[arg(long)]
    once: bool,
    /// Print JSON, one object per line: a sample per delay until the process ends; with --once a single one
    #[arg(long)]
    json: bool,
    /// The process to look at, started with FREESTONE_LIVE=on
    #[arg(value_name = "PID", conflicts_with = "command", required_unless_present = "command")]
    pid: Option<u32>,
    /// A command to start under Freestone, and its arguments. With --once and --json its output goes to stderr
    #[arg(last = true)]
    command: Vec<OsString>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("from 0.1 to 3600".into()),
    }
}

/// Shows the process; returns the exit status: that of a command that was started here, else 0.
///
/// # Errors
/// There is no such process or command, or it keeps no statistics.
pub(crate) fn main(options: &Options) -> Result<u8> {
    let delay = Duration::from_secs_f64(options.delay);
    let wants_screen = !options.once && !options.json;
    if wants_screen && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        bail!("`freestone top` needs a terminal; use --once for one sample as text, or --json for a line per sample");
    }
    // Before the command starts: a signal that ended the lab would leave it behind.
    interrupt::listen();
    interrupt::continue_when_the_reader_is_gone();
    let mut target = match options.pid {
        Some(pid) => Target::attach(pid)?,
        None => Target::start(&options.command, wants_screen)?,
    };
    let result = match (options.once, options.json) {
        (true, is_json) => once::print_one(&mut target, delay, is_json),
        (_, true) => once::print_lines(&mut target, delay),
        _ => screen::show(&mut target, delay),
    };
    let is_over = wants_screen || result.is_err() || interrupt::asked() || printing::has_failed();
    let status = target.finish(is_over)?;
    result.map(|()| status).map_err(|error| Refusal::after_the_command(status.into(), format!("{error:#}")).into())
}
