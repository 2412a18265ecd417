//! The demo of `freestone run`: one small program under the system's allocator and under Freestone, compared.
//!
//! The program ([`demo_program`]) parses a generated JSON document of tens of megabytes, indexes it, queries and transforms it on several
//! threads, and drops everything. Rounds are interleaved. The table is made for readers who see the lab for the first time.

use crate::allocator::description::Allocator;
use crate::allocator::freestone_library;
use crate::measure::order;
use crate::measure::statistics::{self, ENOUGH_ROUNDS, Ratio, Verdict};
use crate::process::child::{self, End};
use crate::process::{interrupt, own_executable};
use crate::progress;
use crate::results::file_header::Seed;
use crate::show::{quantity, table, verdict_text};
use crate::workload::demo_program::{self, DemoRecord};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(120);

/// One row of the table: its label, and the figure that it compares.
struct Row {
    label: &'static str,
    figure: fn(&DemoRecord) -> f64,
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

/// Runs the demo under both allocators, prints the table, and returns the records.
///
/// # Errors
/// Freestone's library cannot be found or built, or the program fails.
pub(super) fn compare(rounds: usize, seed: Option<u32>, as_json: bool) -> Result<serde_json::Value> {
    if rounds == 0 {
        bail!("--rounds 0 measures nothing; give 1 or more");
    }
    interrupt::listen();
    let seed = order::given_or_random(seed);
    let both = [Allocator::system(), freestone_library::find()?];
    let records = measure(rounds, seed, &both)?;
    check(&records)?;
    let [system, freestone] = &records;
    let summary = json!({"seed": seed, "system": system, "freestone": freestone});
    if as_json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        print(&records, seed);
    }
    Ok(summary)
}

fn measure(rounds: usize, seed: Seed, both: &[Allocator; 2]) -> Result<[Vec<DemoRecord>; 2]> {
    let mut records: [Vec<DemoRecord>; 2] = [Vec::new(), Vec::new()];
    let bar = progress::bar((rounds * 2) as u64);
    'rounds: for round in 0..rounds {
        for which in order::of_round(seed, demo_program::SUBCOMMAND, round, 2) {
            if interrupt::asked() {
                break 'rounds;
            }
            bar.set_message(format!("the demo under {}", both[which].name));
            match run_once(&both[which]) {
                Ok(record) => records[which].push(record),
                Err(_) if interrupt::asked() => {}
                Err(error) => return Err(error.context(format!("the demo under {} failed", both[which].name))),
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(records)
}

fn run_once(allocator: &Allocator) -> Result<DemoRecord> {
    let mut command = Command::new(own_executable::path()?);
    command.arg(demo_program::SUBCOMMAND);
    allocator.preload().apply(&mut command);
    let finished = child::run(&mut command, LIMIT).context("the lab could not start itself")?;
    match finished.end {
        End::Exited(status) if status.success() => {}
        End::Exited(status) => bail!("ended with {status}: {}", String::from_utf8_lossy(&finished.stderr).trim()),
        End::TimedOut => bail!("took longer than {} s and was ended", LIMIT.as_secs()),
        End::Interrupted => bail!("interrupted"),
    }
    let record: DemoRecord = serde_json::from_slice(&finished.stdout).context("the demo printed no record")?;
    match &allocator.library {
        Some(library) if library.to_string_lossy() != record.malloc_library => {
            bail!("malloc was answered by {} instead of {}", record.malloc_library, library.display())
        }
        _ => Ok(record),
    }
}

/// Checks that both have run and computed the same.
///
/// # Errors
/// They have not.
fn check(records: &[Vec<DemoRecord>; 2]) -> Result<()> {
    let (Some(first), Some(_)) = (records[0].first(), records[1].first()) else {
        bail!("interrupted before both allocators had run once");
    };
    if records.iter().flatten().any(|record| record.checksum != first.checksum) {
        bail!(
            "the demo computed different results under the two allocators, so one of them damages memory; please report this"
        );
    }
    Ok(())
}

fn print(records: &[Vec<DemoRecord>; 2], Seed(seed): Seed) {
    let [system, freestone] = records;
    let (document, threads) = (system[0].document_bytes as f64, system[0].threads);
    println!(
        "The demo parsed a JSON document of {}, indexed it, transformed it on {} and dropped it,\n{} under each \
         allocator, in random order (--seed {seed}). Both computed the same result.\n",
        quantity::bytes(document),
        quantity::counted(threads as u64, "thread", "threads"),
        quantity::counted(system.len().min(freestone.len()) as u64, "time", "times")
    );
    let header = ["".into(), label("system", system), label("freestone", freestone), "freestone / system".into()];
    let mut rows = Vec::new();
    for row in ROWS {
        let series = |records: &[DemoRecord]| -> Vec<f64> { records.iter().map(row.figure).collect() };
        let (base, ours) = (series(system), series(freestone));
        let show = |values: &[f64]| statistics::median(values).map_or_else(String::new, row.show);
        let ratio = statistics::compare(&ours, &base);
        rows.push(vec![
            row.label.to_owned(),
            show(&base),
            show(&ours),
            ratio.as_ref().map_or_else(String::new, in_words),
        ]);
    }
    table::print(&header, &rows, 1);
    println!("{}\n", verdict_text::legend(&rows, "medians; ratios with their 95 % interval"));
    if system.len().min(freestone.len()) < ENOUGH_ROUNDS {
        println!(
            "With fewer than {ENOUGH_ROUNDS} rounds only the steadiest differences can be told from chance; raise --rounds.\n"
        );
    }
    println!("Next:  freestone run -- YOUR PROGRAM      your program under Freestone, with a summary of its memory");
    println!("       freestone compare -- YOUR PROGRAM  the same under every allocator at hand");
    println!("       freestone bench --quick            built-in workloads, with a report to open in a browser");
}

/// The name with the version that the library states.
fn label(name: &str, records: &[DemoRecord]) -> String {
    let version = records.first().map(|record| record.allocator_version.clone());
    Allocator { name: name.into(), version, ..Allocator::system() }.label()
}

/// The ratio with the difference in percent, for readers who see it for the first time. What may be claimed is decided by [`statistics`].
fn in_words(ratio: &Ratio) -> String {
    let percent = (ratio.median - 1.0).abs() * 100.0;
    let than = match ratio.verdict {
        Verdict::NoDifferenceSeen => return verdict_text::verdict(ratio),
        Verdict::Less => "less",
        Verdict::More => "more",
    };
    format!("{}  ({percent:.0} % {than})", verdict_text::verdict(ratio))
}

#[cfg(test)]
mod tests;
