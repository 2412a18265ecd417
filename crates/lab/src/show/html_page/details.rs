//! The tables of the page: figures of the workloads, published figures, warnings, the machine, all rounds, how to measure again.

use crate::measure::statistics::Verdict;
use crate::measure::summary::{Cell, Figure, Summary};
use crate::results::file_header::{Header, Seed};
use crate::results::warning::{self, Warning};
use crate::show::html_page::skeleton::{escape, section, table};
use crate::show::{command_line, count_tables, program_tables, published, quantity, verdict_text};
use std::ffi::OsString;

/// The figures that the workloads report.
pub(super) fn figures_section(summary: &Summary) -> String {
    let mut rows = Vec::new();
    for subject in summary.subjects() {
        let first = summary.allocators().iter().find_map(|name| summary.records(subject, name).first().copied());
        for name in first.into_iter().flat_map(|record| record.figures.keys()) {
            let mut row = vec![format!("{}<br><span class=\"same\">{}</span>", escape(subject), escape(name))];
            row.extend(summary.allocators().iter().map(|allocator| {
                summary.own_figure(subject, allocator, name).map_or_else(|| "–".into(), quantity::figure)
            }));
            rows.push(row);
        }
    }
    let content = if rows.is_empty() { String::new() } else { table(&header_of(summary), &rows) };
    section("What the workloads report", "Medians of each workload's own figures.", &content)
}

/// The published table of each experiment whose workloads were run.
pub(super) fn published_section(summary: &Summary) -> String {
    let content: String = published::comparisons(summary)
        .into_iter()
        .map(|comparison| {
            let header: Vec<String> = comparison.header.iter().map(|text| escape(text)).collect();
            let cells = |row: &Vec<String>| row.iter().map(|text| escape(text)).collect();
            let rows: Vec<Vec<String>> = comparison.rows.iter().map(cells).collect();
            format!("<h3>{}</h3>{}", escape(&comparison.title), table(&header, &rows))
        })
        .collect();
    let note = format!(
        "The authors' figures, from their machines, beside those measured here. Compare figures within a column, never across columns. {}: no difference seen.",
        verdict_text::SAME
    );
    section("Published and measured", &note, &content)
}

/// The warnings, with what to do about them.
pub(super) fn warnings_section(warnings: &[Warning]) -> String {
    let items: String =
        warning::sentences(warnings).iter().map(|sentence| format!("<li>{}</li>", escape(sentence))).collect();
    let content = if items.is_empty() {
        "<p>None.</p>".into()
    } else {
        format!("<ul class=\"warnings\" id=\"warnings\">{items}</ul>")
    };
    section("Warnings", "Reasons to doubt these figures, and what to do about them.", &content)
}

/// The machine and the allocators' versions.
pub(super) fn machine_section(header: &Header) -> String {
    let machine = &header.machine;
    let rows = [
        ("processor", machine.cpu.clone()),
        ("processors", machine.processors.to_string()),
        ("memory", quantity::bytes(machine.memory_bytes as f64)),
        ("kernel", machine.kernel.clone()),
        ("system", machine.system.clone()),
        ("C library", machine.libc.clone()),
        ("transparent huge pages", machine.transparent_huge_pages.clone()),
        ("frequency governor", machine.governor.clone().unwrap_or_else(|| "not shown by the kernel".into())),
        ("load before the measurement", format!("{:.2}", machine.load)),
        ("version of the lab", header.lab.clone()),
    ];
    let mut rows: Vec<Vec<String>> = rows.iter().map(|(name, value)| vec![(*name).to_owned(), escape(value)]).collect();
    rows.extend(header.allocators.iter().map(|allocator| {
        let version = allocator.version.clone().unwrap_or_else(|| "unstated".into());
        vec![format!("allocator {}", escape(&allocator.name)), escape(&version)]
    }));
    let facts = table(&[String::new(), String::new()], &rows);
    section("Machine and versions", "", &format!("<div class=\"facts\">{facts}</div>"))
}

/// How a figure is shown.
type Show = fn(f64) -> String;

/// The programs of the suite, if some were measured: this is what their page begins with.
pub(super) fn programs_section(summary: &Summary) -> String {
    let programs = program_tables::programs(summary);
    let mut content = String::new();
    for (figure, title, show) in program_tables::FIGURES {
        let rows = raw_rows(summary, programs.iter().copied(), figure, show);
        if !rows.is_empty() {
            content.push_str(&format!("<h3>{title}</h3>{}", table(&header_of(summary), &rows)));
        }
    }
    let note = format!(
        "Median, and ratio to the first column with its interval ({}: no difference seen).",
        verdict_text::SAME
    );
    section("Real programs", &note, &content)
}

/// A row for each of `subjects` that has the figure.
fn raw_rows<'a>(
    summary: &Summary,
    subjects: impl Iterator<Item = &'a String>,
    figure: Figure,
    show: Show,
) -> Vec<Vec<String>> {
    subjects
        .filter(|subject| summary.allocators().iter().any(|name| summary.cell(subject, name, figure).is_some()))
        .map(|subject| {
            let cells = summary.allocators().iter().map(|name| summary.cell(subject, name, figure));
            let cells = cells.map(|cell| cell.map_or_else(|| "–".into(), |cell| raw_cell(&cell, show)));
            std::iter::once(escape(subject)).chain(cells).collect()
        })
        .collect()
}

/// Medians and ratios of every figure, in sections that are closed at first.
pub(super) fn raw_section(summary: &Summary) -> String {
    let kinds: [(Figure, &str, Show); 12] = [
        (Figure::Time, "Time", quantity::time),
        (Figure::Cpu, "Processor time", quantity::time),
        (Figure::PeakRss, "Peak memory", quantity::bytes),
        (Figure::Settled, "Memory a second after the load", quantity::bytes),
        (Figure::Faults, "Page faults", |faults| quantity::count(faults as u64)),
        (Figure::Instructions, "Instructions per operation, counted by callgrind", quantity::digits),
        (Figure::DataReferences, "Data references per operation, counted by callgrind", quantity::digits),
        (Figure::FirstLevelMisses, "First-level misses per operation, in callgrind's model", quantity::digits),
        (Figure::LastLevelMisses, "Last-level misses per operation, in callgrind's model", quantity::digits),
        (Figure::Cycles, "Cycles per operation", quantity::digits),
        (Figure::Retired, "Instructions per operation, from the hardware counter", quantity::digits),
        (Figure::CacheMisses, "Cache misses per operation", quantity::digits),
    ];
    let mut content = String::new();
    for (figure, title, show) in kinds {
        let rows = raw_rows(summary, summary.subjects().iter(), figure, show);
        if !rows.is_empty() {
            content.push_str(&format!(
                "<details><summary>{title}</summary>{}</details>",
                table(&header_of(summary), &rows)
            ));
        }
    }
    let rows = count_tables::event_rows(summary);
    if !rows.is_empty() {
        let cells = |row: &Vec<String>| row.iter().map(|text| escape(text)).collect();
        let table = table(&header_of(summary), &rows.iter().map(cells).collect::<Vec<_>>());
        content.push_str(&format!("<details><summary>{}</summary>{table}</details>", count_tables::EVENTS));
    }
    if let Some(why) = summary.without_counters() {
        content.push_str(&format!("<p class=\"note\">No cycles and no cache misses: {}.</p>", escape(why)));
    }
    let note = format!(
        "Median, and ratio to the first column with its interval ({}: no difference seen). Point at a figure to see every round. The results file \
         has all of this in JSON.",
        verdict_text::SAME
    );
    section("Raw numbers", &note, &content)
}

fn raw_cell(cell: &Cell, show: fn(f64) -> String) -> String {
    let rounds: Vec<String> = cell.rounds.iter().map(|&value| show(value)).collect();
    let ratio = cell.ratio.as_ref().map_or_else(String::new, |ratio| {
        let class = match ratio.verdict {
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::NoDifferenceSeen => "same",
        };
        format!("<br><span class=\"{class}\">{}</span>", escape(&verdict_text::verdict(ratio)))
    });
    format!("<span title=\"{}\">{}</span>{ratio}", escape(&rounds.join(", ")), escape(&show(cell.median)))
}

/// The command that measures this again.
pub(super) fn reproduce_section(header: &Header) -> String {
    let mut words: Vec<OsString> = header.command.iter().map(OsString::from).collect();
    if let Some(first) = words.first_mut() {
        *first = "freestone".into();
    }
    // The measured command may have an option of this name too.
    let is_given = |seed: &str| {
        let words = &header.command;
        words.windows(2).any(|pair| pair == ["--seed", seed]) || words.contains(&format!("--seed={seed}"))
    };
    if let Some(seed) = header.seed.map(|Seed(seed)| seed.to_string()).filter(|seed| !is_given(seed)) {
        // Right after the subcommand: what follows `--` belongs to the measured command.
        let seed_option = ["--seed".into(), seed.into()];
        words.splice(words.len().min(2)..words.len().min(2), seed_option);
    }
    let command = command_line::quoted(&words);
    section(
        "Measure it again",
        "First build the other allocators: freestone peers build. Then:",
        &format!("<pre>{}</pre>", escape(&command)),
    )
}

fn header_of(summary: &Summary) -> Vec<String> {
    std::iter::once(String::new())
        .chain(summary.allocators().iter().map(|name| escape(&summary.heading(name)).replace('\n', "<br>")))
        .collect()
}
