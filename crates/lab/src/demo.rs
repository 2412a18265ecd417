//! The demo of `freestone run`: one small real program under the system's allocator and under Freestone, side by side.
//!
//! The program ([`program`]) parses a generated JSON document of tens of megabytes, indexes it, queries and transforms it on several threads, and
//! drops it all. Rounds are interleaved, and the table is made for someone who sees this for the first time.

pub(crate) mod program;

use crate::allocator::{self, Allocator};
use crate::order::Seed;
use crate::statistics::{self, ENOUGH_ROUNDS, Ratio, Verdict};
use crate::{bench, command, interrupt, progress, quantity, table};
use anyhow::{Context, Result, bail};
use program::Record;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// The hidden subcommand that is the program.
pub(crate) const SUBCOMMAND: &str = "demo-program";

/// One line of the table: what it says, and the figure it compares.
struct Row {
    label: &'static str,
    figure: fn(&Record) -> f64,
    show: fn(f64) -> String,
}

const ROWS: &[Row] = &[
    Row { label: "time, start to end", figure: |record| record.total_ns() as f64, show: quantity::time },
    Row { label: "  generate the document", figure: |record| record.generate_ns as f64, show: quantity::time },
    Row { label: "  parse it", figure: |record| record.parse_ns as f64, show: quantity::time },
    Row { label: "  build an index", figure: |record| record.index_ns as f64, show: quantity::time },
    Row { label: "  transform on threads", figure: |record| record.transform_ns as f64, show: quantity::time },
    Row { label: "  drop everything", figure: |record| record.drop_ns as f64, show: quantity::time },
    Row { label: "processor time", figure: |record| record.cpu_ns as f64, show: quantity::time },
    Row {
        label: "page faults",
        figure: |record| record.minor_faults as f64,
        show: |count| quantity::count(count as u64),
    },
    Row { label: "peak memory", figure: |record| record.peak_rss_bytes as f64, show: quantity::bytes },
    Row { label: "memory a second after", figure: |record| record.rss_after_bytes as f64, show: quantity::bytes },
];

/// Runs the demo under both allocators and prints the table.
///
/// # Errors
/// Freestone's library cannot be had, or the program fails.
pub(crate) fn compare(rounds: usize, seed: Option<u32>, as_json: bool) -> Result<()> {
    if rounds == 0 {
        bail!("--rounds 0 measures nothing; give 1 or more");
    }
    interrupt::listen();
    let seed = Seed::given_or_drawn(seed);
    let pair = [Allocator::system(), allocator::freestone()?];
    let mut records: [Vec<Record>; 2] = [Vec::new(), Vec::new()];
    let bar = progress::bar((rounds * 2) as u64);
    for round in 0..rounds {
        for which in seed.order(SUBCOMMAND, round, 2) {
            bar.set_message(format!("the demo under {}", pair[which].name));
            if !interrupt::asked() {
                match one(&pair[which]) {
                    Ok(record) => records[which].push(record),
                    Err(_) if interrupt::asked() => {}
                    Err(error) => return Err(error.context(format!("the demo under {} failed", pair[which].name))),
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    check(&records)?;
    if as_json {
        println!(
            "{}",
            serde_json::to_string_pretty(&json!({"seed": seed, "system": records[0], "freestone": records[1]}))?
        );
    } else {
        print(&records, seed);
    }
    Ok(())
}

fn one(allocator: &Allocator) -> Result<Record> {
    let output = command::run_own(&[SUBCOMMAND], allocator, Duration::from_secs(120))?;
    let record: Record = serde_json::from_slice(&output).context("the demo printed no record")?;
    match &allocator.library {
        Some(library) if Path::new(&record.malloc_library) != library => {
            bail!("malloc was answered by {} instead of {}", record.malloc_library, library.display())
        }
        _ => Ok(record),
    }
}

/// Both must have run, and computed the same.
fn check(records: &[Vec<Record>; 2]) -> Result<()> {
    let (Some(first), Some(_)) = (records[0].first(), records[1].first()) else {
        bail!("interrupted before both allocators had run once");
    };
    if records.iter().flatten().any(|record| record.checksum != first.checksum) {
        bail!("the two allocators led to different results: one of them damages memory; please report this");
    }
    Ok(())
}

fn print(records: &[Vec<Record>; 2], Seed(seed): Seed) {
    let [system, freestone] = records;
    let (document, threads) = (system[0].document_bytes as f64, system[0].threads);
    println!(
        "The demo parsed a JSON document of {}, indexed it, transformed it on {threads} threads and dropped it,\n{} times under each \
         allocator, in an order drawn by chance (--seed {seed}). Both computed the same result. Figures are medians; of ratios, with their 95 % interval.\n",
        quantity::bytes(document),
        system.len().min(freestone.len())
    );
    let mut table =
        table::new(&["".into(), label("system", system), label("freestone", freestone), "freestone / system".into()]);
    for row in ROWS {
        let series = |records: &[Record]| -> Vec<f64> { records.iter().map(row.figure).collect() };
        let (base, ours) = (series(system), series(freestone));
        let show = |values: &[f64]| statistics::median(values).map_or_else(String::new, row.show);
        let ratio = statistics::compare(&ours, &base);
        table.add_row(vec![
            row.label.to_owned(),
            show(&base),
            show(&ours),
            ratio.as_ref().map_or_else(String::new, in_words),
        ]);
    }
    println!("{table}\n");
    if system.len().min(freestone.len()) < ENOUGH_ROUNDS {
        println!(
            "With fewer than {ENOUGH_ROUNDS} rounds only the steadiest differences can be told from chance; --rounds asks for more.\n"
        );
    }
    println!("Next:  freestone run -- YOUR PROGRAM      your program under Freestone, with a summary of its memory");
    println!("       freestone compare -- YOUR PROGRAM  the same under every allocator at hand");
    println!("       freestone bench --quick            built-in workloads, with a report to open in a browser");
}

/// The name with the version that the library stated.
fn label(name: &str, records: &[Record]) -> String {
    let version = records.first().map(|record| record.allocator_version.clone());
    Allocator { name: name.into(), version, ..Allocator::system() }.label()
}

/// `0.71` in words a newcomer understands. What may be claimed is decided where it is for every measurement: in [`statistics`].
fn in_words(ratio: &Ratio) -> String {
    let percent = (ratio.median - 1.0).abs() * 100.0;
    let than = match ratio.verdict {
        Verdict::NoDifferenceSeen => return "no difference seen".into(),
        Verdict::Less => "less",
        Verdict::More => "more",
    };
    format!("{}  ({percent:.0} % {than})", bench::verdict(ratio))
}

#[cfg(test)]
mod tests;
