//! A table of published and measured figures.

use crate::measure::summary::{Figure, Summary};
use crate::show::verdict_text::SAME;
use crate::show::{quantity, table};

/// Stands for a figure that was not measured or not published.
pub(crate) const NO_FIGURE: &str = "–";

/// One table.
pub(crate) struct Comparison {
    /// What is compared.
    pub(crate) title: String,
    /// The headings of the columns.
    pub(crate) header: Vec<String>,
    /// The rows; each begins with its name.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Comparison {
    /// A table without rows.
    pub(crate) fn new(title: impl Into<String>, header: &[&str]) -> Self {
        Self { title: title.into(), header: header.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// Prints the table on the terminal.
    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        table::print(&self.header, &self.rows, 1);
        if self.rows.iter().flatten().any(|cell| cell.starts_with(SAME)) {
            println!(" {SAME}: no difference seen");
        }
    }
}

/// Whether `subject` was measured.
pub(crate) fn has(summary: &Summary, subject: &str) -> bool {
    summary.subjects().iter().any(|measured| measured == subject)
}

/// The median of a figure as text; a dash if it was not measured.
pub(crate) fn shown(summary: &Summary, subject: &str, allocator: &str, figure: Figure) -> String {
    let show = match figure {
        Figure::Time | Figure::Cpu => quantity::time,
        Figure::PeakRss | Figure::Settled => quantity::bytes,
        Figure::Faults => |faults: f64| quantity::count(faults as u64),
        _ => quantity::digits,
    };
    summary.cell(subject, allocator, figure).map_or_else(|| NO_FIGURE.into(), |cell| show(cell.median))
}
