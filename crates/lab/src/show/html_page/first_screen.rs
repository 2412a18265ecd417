//! The first screen: what a reader with one minute should learn.

use crate::measure::ranking::{self, ASPECTS, Aspect, Tally};
use crate::measure::summary::{Figure, Summary};
use crate::results::file_header::Header;
use crate::results::warning::{self, Warning};
use crate::show::html_page::skeleton::{self, escape};
use crate::show::{plot, quantity};

/// The ranking in words, and a row for every allocator.
pub(super) fn section(summary: &Summary, header: &Header, warnings: &[Warning]) -> String {
    let Some(baseline) = summary.allocators().first() else {
        return skeleton::section("Summary", "", "<p>These files hold no finished run.</p>");
    };
    if header.allocators.len() < 2 {
        let alone = "<p>Only one allocator was measured, so there is nothing to compare it with.</p>";
        return skeleton::section("Summary", "", alone);
    }
    let rounds = summary
        .subjects()
        .iter()
        .filter_map(|subject| Some(summary.cell(subject, baseline, Figure::Time)?.rounds.len()))
        .max()
        .unwrap_or(0);
    let note = format!(
        "{} compared with {baseline} on {} in up to {}. The large figure is the geometric mean of the ratios; below 1 \
         is better. A difference that chance explains counts as none; workloads made to show memory do not count for time.",
        ranking::enumerated(&ranking::compared(summary).cloned().collect::<Vec<_>>()),
        subjects(summary.subjects().len()),
        quantity::counted(rounds as u64, "interleaved round", "interleaved rounds"),
    );
    skeleton::section("Summary", &note, &format!("{}{}{}", leaders(summary), lines_of(summary), pointer(warnings)))
}

/// Which allocators need least, the baseline included, and where Freestone is behind another.
fn leaders(summary: &Summary) -> String {
    let least: Vec<String> = ASPECTS
        .iter()
        .filter_map(|aspect| ranking::least(summary, aspect, |name| format!("<b>{}</b>", escape(name))))
        .collect();
    let defeats = ASPECTS.iter().filter_map(|aspect| ranking::defeats(summary, aspect));
    let defeats: String = defeats.map(|sentence| format!("<p>{}</p>", escape(&sentence))).collect();
    format!("<p class=\"lead\">{}</p>{defeats}", least.join(" "))
}

fn lines_of(summary: &Summary) -> String {
    let lines: String = ranking::compared(summary).map(|allocator| line(summary, allocator)).collect();
    let heads: String = ASPECTS.iter().map(|aspect| format!("<th colspan=\"2\">{}</th>", aspect.name)).collect();
    format!(
        "<div class=\"wide\"><table class=\"heads\"><thead><tr><th></th>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )
}

fn line(summary: &Summary, allocator: &str) -> String {
    let cells: String = ASPECTS.iter().map(|aspect| cell(summary, allocator, aspect)).collect();
    format!(
        "<tr><th><i style=\"background:{}\"></i>{}</th>{cells}</tr>",
        plot::colour(allocator),
        escape(&summary.label(allocator))
    )
}

/// The mean, and a bar with the shares of subjects that are better, equal and worse.
fn cell(summary: &Summary, allocator: &str, aspect: &Aspect) -> String {
    let Some(tally) = Tally::of(summary, allocator, aspect.figure) else {
        return "<td colspan=\"2\" class=\"same\">not measured</td>".into();
    };
    let parts: String = [("good", tally.less), ("even", tally.same), ("bad", tally.more)]
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(class, number)| format!("<i class=\"{class}\" style=\"flex:{number}\"></i>"))
        .collect();
    format!(
        "<td data-of=\"{}\"><strong>{:.2}×</strong></td><td><div class=\"bar\">{parts}</div><span>{}</span></td>",
        aspect.name,
        tally.mean,
        tally.counted(aspect)
    )
}

/// A link to the warnings.
fn pointer(warnings: &[Warning]) -> String {
    match warning::sentences(warnings).len() {
        0 => String::new(),
        1 => "<p class=\"note\">There is <a href=\"#warnings\">one warning</a>.</p>".into(),
        number => format!("<p class=\"note\">There are <a href=\"#warnings\">{number} warnings</a>.</p>"),
    }
}

fn subjects(number: usize) -> String {
    if number == 1 { "one subject".into() } else { format!("{number} subjects") }
}
