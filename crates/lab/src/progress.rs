//! Progress bars and spinners on stderr, for anything that takes over a second; none if stderr is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr, stdin};
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

/// Asks a question that is answered by yes or no; an empty line means yes. Without a terminal nobody can answer: yes.
pub(crate) fn confirmed(question: &str) -> bool {
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        return true;
    }
    eprint!("{question} [Y/n] ");
    let mut answer = String::new();
    stdin().read_line(&mut answer).is_ok_and(|length| length > 0) && is_yes(&answer)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

fn hidden() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_and_yes_are_yes_and_anything_else_is_no() {
        assert!(["\n", "y\n", "Yes\n"].into_iter().all(is_yes));
        assert!(!["n\n", "no\n", "what?\n"].into_iter().any(is_yes));
    }
}
