//! The tables of `freestone bench --programs`: on the terminal, on the page, and as Markdown.

use crate::measure::summary::{Figure, Summary};
use crate::program_suite::catalogue;
use crate::results::file_header::Header;
use crate::results::timestamp;
use crate::show::{quantity, summary_tables, verdict_text};
use std::fmt::Write;

/// How a figure is shown.
type Show = fn(f64) -> String;

/// The figures of programs, in the order of their importance here: other processes disturb processor time less than time.
pub(crate) const FIGURES: [(Figure, &str, Show); 4] = [
    (Figure::Cpu, "Processor time", quantity::time),
    (Figure::PeakRss, "Peak memory", quantity::bytes),
    (Figure::Settled, "Memory of servers a second after the load", quantity::bytes),
    (Figure::Time, "Time from start to end", quantity::time),
];

/// Prints the tables on the terminal.
pub(crate) fn print(summary: &Summary) {
    summary_tables::print_ranking(summary);
    let base = summary.allocators().first().map_or("", String::as_str);
    for (figure, title, show) in FIGURES {
        if summary.subjects().iter().any(|subject| summary.cell(subject, base, figure).is_some()) {
            println!("\n{title}, as a multiple of {base}'s (below 1: less)");
            summary_tables::print_figure(summary, figure, show);
        }
    }
}

/// The measured programs of the suite.
pub(crate) fn programs(summary: &Summary) -> Vec<&String> {
    summary.subjects().iter().filter(|subject| catalogue::find(subject).is_some()).collect()
}

/// Processor time and peak memory of each program as a Markdown table, with the versions and the date below it; `None` without programs.
pub(crate) fn markdown(summary: &Summary, header: &Header) -> Option<String> {
    let programs = programs(summary);
    let (base, others) = summary.allocators().split_first()?;
    if programs.is_empty() {
        return None;
    }
    let mut text = format!("| program | {} |", summary.label(base));
    others.iter().for_each(|name| text += &format!(" {} |", summary.label(name)));
    text += &format!("\n|---|{}\n", "---|".repeat(summary.allocators().len()));
    for subject in programs {
        let does = catalogue::find(subject).map_or("", |program| program.does);
        // Writing to a string does not fail.
        let _ = write!(text, "| {subject}: {does} | {} |", plain(summary, subject, base));
        for name in others {
            let _ = write!(text, " {} |", relative(summary, subject, name));
        }
        text.push('\n');
    }
    let machine = &header.machine;
    let _ = write!(
        text,
        "\nProcessor time, then peak memory; relative to {base}, {} where no difference was seen. {} processors, {}, {}, {}.\n",
        verdict_text::SAME,
        machine.processors,
        machine.kernel,
        machine.libc,
        timestamp::utc(header.started_unix).split(' ').next().unwrap_or_default()
    );
    Some(text)
}

fn plain(summary: &Summary, subject: &str, name: &str) -> String {
    let show = |figure, show: Show| summary.cell(subject, name, figure).map_or("–".into(), |cell| show(cell.median));
    format!("{}, {}", show(Figure::Cpu, quantity::time), show(Figure::PeakRss, quantity::bytes))
}

fn relative(summary: &Summary, subject: &str, name: &str) -> String {
    let show = |figure| {
        let ratio = summary.cell(subject, name, figure).and_then(|cell| cell.ratio);
        ratio.map_or("failed".into(), |ratio| verdict_text::short_verdict(&ratio))
    };
    format!("{}, {}", show(Figure::Cpu), show(Figure::PeakRss))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::description::Allocator;
    use crate::process::command_record::CommandRecord;
    use crate::results::file_header::Seed;
    use crate::results::machine::Machine;
    use crate::results::outcome::{Outcome, Run};

    fn run(subject: &str, allocator: &str, round: usize, bytes: u64) -> Run {
        let outcome = Outcome::Command(CommandRecord::example(1000, bytes));
        Run { subject: subject.into(), allocator: allocator.into(), round, outcome }
    }

    #[test]
    fn the_markdown_has_a_row_for_each_program_and_none_for_other_commands() {
        let mut runs = Vec::new();
        for round in 0..8 {
            for subject in ["jq", "./mine"] {
                runs.extend([run(subject, "system", round, 1 << 20), run(subject, "other", round, 1 << 19)]);
            }
        }
        let summary = Summary::of(&runs, "system");
        let header = Header::new(Machine::here(), Seed(1), &[Allocator::system()]);
        let text = markdown(&summary, &header).unwrap();
        assert!(text.starts_with("| program | system | other |\n|---|---|---|\n| jq: "), "{text}");
        assert!(text.contains(", 1.00 MiB | ≈, 0.50 |\n") && !text.contains("./mine"), "{text}");
        assert!(markdown(&Summary::of(&[run("./mine", "system", 0, 1)], "system"), &header).is_none());
    }
}
