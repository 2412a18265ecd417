//! The first screen: what a reader who has one minute should take away.

use super::page::{self, escape};
use crate::plot;
use crate::results::Header;
use crate::standing::{self, ASPECTS, Aspect, Tally};
use crate::summary::{Figure, Summary};
use crate::warning::{self, Warning};

/// The summary in words and one line for every allocator.
pub(super) fn section(summary: &Summary, header: &Header, warnings: &[Warning]) -> String {
    let Some(baseline) = summary.allocators().first() else {
        return page::section("Summary", "", "<p>These files hold no finished run.</p>");
    };
    if header.allocators.len() < 2 {
        let alone = "<p>Only one allocator was measured, so there is nothing to compare it with.</p>";
        return page::section("Summary", "", alone);
    }
    let rounds = summary
        .subjects()
        .iter()
        .filter_map(|subject| Some(summary.cell(subject, baseline, Figure::Time)?.rounds.len()))
        .max()
        .unwrap_or(0);
    let note = format!(
        "{} compared with {baseline} on {} in up to {rounds} interleaved rounds. The large figure is the geometric mean of the ratios; below 1 \
         is better. Where chance explains a difference, it counts as none; workloads made to show memory do not count for time.",
        standing::listed(&standing::compared(summary).cloned().collect::<Vec<_>>()),
        subjects(summary.subjects().len()),
    );
    page::section("Summary", &note, &format!("{}{}{}", leaders(summary), lines_of(summary), pointer(warnings)))
}

/// Who needs least, of all allocators, the baseline included; and where Freestone is not the best choice.
fn leaders(summary: &Summary) -> String {
    let least: Vec<String> = ASPECTS
        .iter()
        .filter_map(|aspect| standing::least(summary, aspect, |name| format!("<b>{}</b>", escape(name))))
        .collect();
    let defeats = ASPECTS.iter().filter_map(|aspect| standing::defeats(summary, aspect));
    let defeats: String = defeats.map(|said| format!("<p>{}</p>", escape(&said))).collect();
    format!("<p class=\"lead\">{}</p>{defeats}", least.join(" "))
}

fn lines_of(summary: &Summary) -> String {
    let lines: String = standing::compared(summary).map(|allocator| line(summary, allocator)).collect();
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

/// The mean, and how it came about: a bar of the subjects that are better, equal and worse.
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

/// Where the reasons for doubt are.
fn pointer(warnings: &[Warning]) -> String {
    match warning::told(warnings).len() {
        0 => String::new(),
        1 => "<p class=\"note\">There is <a href=\"#warnings\">one warning</a>.</p>".into(),
        number => format!("<p class=\"note\">There are <a href=\"#warnings\">{number} warnings</a>.</p>"),
    }
}

fn subjects(number: usize) -> String {
    if number == 1 { "one subject".into() } else { format!("{number} subjects") }
}
