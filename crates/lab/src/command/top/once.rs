//! Samples as text or as JSON, for scripts.

use super::target::Target;
use crate::printing;
use crate::process::interrupt;
use crate::show::{quantity, table};
use anyhow::{Context, Result};
use freestone::Details;
use freestone::door::live::LiveState;
use std::thread;
use std::time::{Duration, Instant};

/// How often the end of the process is asked for.
const STEP: Duration = Duration::from_millis(10);

/// Longest wait for the first state.
const FIRST_LIMIT: Duration = Duration::from_secs(5);

/// Prints one sample: after the delay, or when the process ends or a signal asks the lab to stop.
///
/// # Errors
/// The process writes no state.
pub(super) fn print_one(target: &mut Target, delay: Duration, is_json: bool) -> Result<()> {
    wait(target, delay);
    let end = target.end();
    let (pid, name) = target.title();
    let title = format!("{pid} {name}");
    let state = first_state(target)?;
    if is_json {
        println!("{}", json_line(state, end.as_deref()));
    } else {
        print_text(state, &title, end.as_deref());
    }
    Ok(())
}

/// Prints a line of JSON per delay, until the process ends, a signal asks the lab to stop or nobody can read them, and one at the end.
///
/// # Errors
/// The process writes no state.
pub(super) fn print_lines(target: &mut Target, delay: Duration) -> Result<()> {
    first_state(target)?;
    loop {
        let end = target.end();
        let line = target.state().map(|state| json_line(state, end.as_deref())).unwrap_or_default();
        println!("{line}");
        if end.is_some() || interrupt::asked() || printing::has_failed() {
            return Ok(());
        }
        wait(target, delay);
    }
}

/// Waits for the delay, the end of the process, or a signal.
fn wait(target: &mut Target, delay: Duration) {
    let began = Instant::now();
    while began.elapsed() < delay && target.end().is_none() && !interrupt::asked() {
        thread::sleep(STEP.min(delay));
    }
}

/// The newest state, once there is one.
fn first_state(target: &mut Target) -> Result<&LiveState> {
    let began = Instant::now();
    let is_over = || interrupt::asked() || began.elapsed() >= FIRST_LIMIT;
    while target.state().is_none() && target.end().is_none() && !is_over() {
        thread::sleep(STEP);
    }
    target.state().context("the process has not written any figures")
}

/// The figures as the library writes them, after the process's number, the state's time, and how the process ended.
fn json_line(state: &LiveState, end: Option<&str>) -> String {
    let details = Details { stats: state.stats, classes: &state.classes, heaps: state.heaps() };
    let figures = details.json().to_string();
    let end = end.map_or(String::new(), |end| format!("\"end\":{},", serde_json::Value::from(end)));
    format!("{{\"pid\":{},\"ms\":{},{end}{}", state.process, state.at_ms, figures.strip_prefix('{').unwrap_or(&figures))
}

fn print_text(state: &LiveState, title: &str, end: Option<&str>) {
    let stats = &state.stats;
    println!("{title}{}", end.map_or(String::new(), |end| format!(", which {end}")));
    let header = ["memory", "now"].map(str::to_owned);
    let parts = [
        ("committed", stats.committed),
        ("resident", stats.resident()),
        ("live", stats.live),
        ("cached", stats.cached),
        ("fragmented", stats.fragmented),
        ("dirty", stats.dirty),
        ("metadata", stats.metadata),
        ("peak committed", stats.peak_committed),
        ("peak live", stats.peak_live),
    ];
    let mut rows = parts.map(|(name, bytes)| vec![name.to_owned(), quantity::bytes(bytes as f64)]).to_vec();
    rows.push(vec!["live in 4 KiB of resident".into(), quantity::bytes(stats.density() as f64)]);
    table::print(&header, &rows, 1);
    let header = ["block size", "live", "blocks", "cached", "allocations", "frees", "remote frees"].map(str::to_owned);
    let used = state.classes.iter().filter(|row| row.has_figures());
    let rows: Vec<_> = used
        .map(|row| {
            let size = if row.block_bytes == 0 { "large".into() } else { row.block_bytes.to_string() };
            let counts = [row.n_allocations, row.n_frees, row.n_remote_frees].map(quantity::count);
            let sizes =
                [quantity::bytes(row.live as f64), quantity::count(row.n_live()), quantity::bytes(row.cached as f64)];
            [vec![size], sizes.to_vec(), counts.to_vec()].concat()
        })
        .collect();
    table::print(&header, &rows, 1);
}

#[cfg(test)]
mod tests;
