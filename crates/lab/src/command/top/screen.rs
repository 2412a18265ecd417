//! The view on the terminal: it is drawn, keys are read, and the terminal is as before when it ends, however it ends.

use super::keys;
use super::target::Target;
use super::view;
use super::view_state::ViewState;
use crate::process::interrupt;
use anyhow::{Context, Result};
use ratatui::crossterm::event::{self, Event};
use std::time::{Duration, Instant};

/// If the page does not change for so long, it is looked for again: the process may run another program.
const STALE: Duration = Duration::from_secs(2);

/// Longest wait for a key before signals are asked for.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// Shows the process until the user quits.
///
/// # Errors
/// The terminal cannot be used.
pub(super) fn show(target: &mut Target, delay: Duration) -> Result<()> {
    // The hook of panics restores the terminal, too.
    let mut terminal = ratatui::try_init().context("the terminal cannot be used; use --once or --json")?;
    let result = run(&mut terminal, target, delay);
    ratatui::restore();
    result
}

fn run(terminal: &mut ratatui::DefaultTerminal, target: &mut Target, delay: Duration) -> Result<()> {
    let (pid, name) = target.title();
    let mut view = ViewState::new(format!("{pid} {name}"));
    let mut changed_at = Instant::now();
    loop {
        if target.state().is_some_and(|state| view.add(state)) {
            changed_at = Instant::now();
        }
        view.end = target.end();
        if view.end.is_none() && !view.is_paused && changed_at.elapsed() > STALE {
            target.attach_again();
            changed_at = Instant::now();
        }
        terminal.draw(|frame| view::draw(frame, &view))?;
        let sampled_at = Instant::now();
        while let Some(rest) = delay.checked_sub(sampled_at.elapsed()) {
            if interrupt::asked() {
                return Ok(());
            }
            if !event::poll(rest.min(KEY_WAIT))? {
                continue;
            }
            match event::read()? {
                Event::Key(key) => {
                    if let Some(action) = keys::action(key) {
                        view.act(action);
                    }
                }
                Event::Resize(..) => {}
                _ => continue,
            }
            if view.quits {
                return Ok(());
            }
            terminal.draw(|frame| view::draw(frame, &view))?;
        }
    }
}
