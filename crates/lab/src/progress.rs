//! Progress bars and spinners on stderr, for anything that takes over a second; none if stderr is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// A bar of `len` steps.
pub(crate) fn bar(len: u64) -> ProgressBar {
    let bar = if stderr().is_terminal() { ProgressBar::new(len) } else { hidden() };
    bar.set_style(style("{wide_bar:.cyan/dim} {pos}/{len}  {eta:>4}  {msg}"));
    bar
}

/// A spinner with `message` beside it.
pub(crate) fn spinner(message: impl Into<String>) -> ProgressBar {
    let spinner = if stderr().is_terminal() { ProgressBar::new_spinner() } else { hidden() };
    spinner.set_style(style("{spinner:.cyan} {msg} ({elapsed})"));
    spinner.set_message(message.into());
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn hidden() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
