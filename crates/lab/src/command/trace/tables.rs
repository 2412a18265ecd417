//! The tables of `freestone trace`.

use crate::show::{quantity, table};
use crate::trace::analysis::Analysis;
use crate::trace::recording::Recording;
use crate::trace::timeline::Timeline;

/// Most threads in their table.
const MOST_THREADS: usize = 20;

/// Prints a summary and all tables.
pub(super) fn print(recording: &Recording, timeline: &Timeline, figures: &Analysis) {
    println!("{}", summary(recording, timeline, figures));
    println!("\nSizes, as the program asked for them; bytes that a resize added count for the new size");
    table::print(&texts(&["up to", "allocations", "share", "bytes", "live at end"]), &sizes(figures), 1);
    println!("\nLifetimes of freed blocks");
    table::print(&texts(&["from", "blocks", "share"]), &lifetimes(figures), 1);
    println!("\nThreads; bytes that a resize added count for the thread that resized");
    let header = texts(&["thread", "from", "to", "allocations", "bytes", "frees", "of others' blocks"]);
    table::print(&header, &threads(figures), 1);
}

fn summary(recording: &Recording, timeline: &Timeline, figures: &Analysis) -> String {
    let bytes = |bytes: u64| quantity::bytes(bytes as f64);
    let mut lines = vec![
        format!("command       {}", recording.command),
        format!(
            "calls         {}: {} allocations, {} frees, {} resized{}",
            quantity::count(recording.n_calls()),
            quantity::count(figures.allocations),
            quantity::count(figures.frees),
            quantity::count(figures.resizes),
            recording.bytes_a_call("; "),
        ),
        format!("time          {}", quantity::time(figures.duration_us as f64 * 1e3)),
        format!("allocated     {}", bytes(figures.allocated_bytes)),
        format!(
            "peak live     {} in {} blocks, after {}",
            bytes(figures.peak_live_bytes),
            quantity::count(figures.peak_live_blocks),
            quantity::time(figures.peak_us as f64 * 1e3)
        ),
        format!(
            "live at end   {} in {} blocks",
            bytes(figures.live_at_end_bytes),
            quantity::count(figures.live_at_end_blocks)
        ),
        format!("passed        {} blocks were freed by another thread", quantity::count(figures.passed_blocks)),
    ];
    if recording.peak_rss != 0 {
        lines.push(format!("peak resident {} of the whole process", bytes(recording.peak_rss)));
    }
    let unrecorded = [
        (timeline.n_failed, "allocations failed"),
        (timeline.n_unknown, "blocks were freed whose allocation was not recorded"),
        (timeline.n_implied, "blocks were used again whose free was not recorded"),
    ];
    lines.extend(unrecorded.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("              {n} {what}")));
    lines.join("\n")
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

fn sizes(figures: &Analysis) -> Vec<Vec<String>> {
    let row = |(&log2, size): (&u32, &crate::trace::analysis::SizeFigures)| {
        vec![
            quantity::bytes((1_u128 << log2) as f64),
            quantity::count(size.allocations),
            share(size.allocations, figures.allocations),
            quantity::bytes(size.bytes as f64),
            quantity::count(size.live_at_end),
        ]
    };
    figures.sizes.iter().map(row).collect()
}

fn lifetimes(figures: &Analysis) -> Vec<Vec<String>> {
    let row = |(&log10, &blocks): (&u32, &u64)| {
        let from = if log10 == 0 { "less".to_owned() } else { quantity::time(10_f64.powi(log10 as i32) * 1e3) };
        vec![from, quantity::count(blocks), share(blocks, figures.frees)]
    };
    figures.lifetimes.iter().map(row).collect()
}

/// The threads that allocated most, the first one first.
fn threads(figures: &Analysis) -> Vec<Vec<String>> {
    let mut threads: Vec<_> = figures.threads.iter().collect();
    threads.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.allocations));
    threads.truncate(MOST_THREADS);
    threads.sort_by_key(|(number, _)| **number);
    let row = |(number, thread): (&u32, &crate::trace::analysis::ThreadFigures)| {
        vec![
            number.to_string(),
            quantity::time(thread.first_us as f64 * 1e3),
            quantity::time(thread.last_us as f64 * 1e3),
            quantity::count(thread.allocations),
            quantity::bytes(thread.bytes as f64),
            quantity::count(thread.frees),
            quantity::count(thread.frees_of_others),
        ]
    };
    threads.into_iter().map(row).collect()
}
