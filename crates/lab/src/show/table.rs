//! Tables on a terminal: horizontal lines only, figures aligned to the right, never wider than the terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use console::Term;
use std::fmt;

/// Width in characters when the output does not go to a terminal.
const WIDTH_OF_FILES: usize = 140;

/// Characters between two columns.
const GAP: usize = 3;

/// Prints `rows` under `header`; every column but the first is aligned to the right. A table that is too wide for the terminal is split into
/// several, each with the first `kept` columns.
pub(crate) fn print(header: &[String], rows: &[Vec<String>], kept: usize) {
    let wide = widths(header, rows);
    for columns in parts(&wide, kept, width()) {
        let part = |row: &[String]| columns.iter().filter_map(|&column| row.get(column).cloned()).collect::<Vec<_>>();
        let mut table = new(&part(header));
        let needed: usize = columns.iter().map(|&column| wide[column] + GAP).sum();
        if needed > width() {
            // One column is wider than the terminal: its lines are wrapped.
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width_u16());
        }
        rows.iter().for_each(|row| {
            table.add_row(part(row));
        });
        println!("{table}");
    }
}

/// Whether `rows` under `header` fit into one table.
pub(crate) fn fits(header: &[String], rows: &[Vec<String>]) -> bool {
    parts(&widths(header, rows), 1, width()).len() == 1
}

/// The columns of each table: the first `kept`, and as many others as fit into `width`, at least one.
fn parts(widths: &[usize], kept: usize, width: usize) -> Vec<Vec<usize>> {
    let always: Vec<usize> = (0..kept.min(widths.len())).collect();
    let needs = |columns: &[usize]| columns.iter().map(|&column| widths[column] + GAP).sum::<usize>();
    let mut parts = vec![always.clone()];
    for (column, wide) in widths.iter().enumerate().skip(kept) {
        let part = parts.last_mut().unwrap_or_else(|| unreachable!("there is a part from the start"));
        if part.len() > kept && needs(part) + wide + GAP > width {
            parts.push([&always[..], &[column]].concat());
        } else {
            part.push(column);
        }
    }
    parts
}

fn widths(header: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let of_text = |text: &String| text.lines().map(console::measure_text_width).max().unwrap_or(0);
    let wide = |row: &[String], column: usize| row.get(column).map_or(0, of_text);
    (0..header.len())
        .map(|column| rows.iter().map(|row| wide(row, column)).fold(wide(header, column), usize::max))
        .collect()
}

fn width() -> usize {
    Term::stdout().size_checked().map_or(WIDTH_OF_FILES, |(_, columns)| columns.into())
}

/// An empty table; every column but the first is aligned to the right.
pub(crate) fn new(header: &[String]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The least width at which columns of text can be read; on narrower terminals each row is a list.
const WIDTH_OF_TEXT: usize = 72;

/// A table of text: columns aligned to the left, with lines wrapped at the terminal's width. Where the terminal is too narrow for columns, each row is
/// its first cell, and below it the name and the text of each other cell that is not empty.
pub(crate) struct TextTable {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// An empty table of text.
pub(crate) fn text(header: &[String]) -> TextTable {
    TextTable { header: header.to_vec(), rows: Vec::new() }
}

impl TextTable {
    /// Adds a row, with a cell for each column.
    pub(crate) fn add_row(&mut self, row: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    fn in_columns(&self) -> Table {
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_header(&self.header);
        table.set_width(width_u16());
        self.rows.iter().for_each(|row| {
            table.add_row(row);
        });
        table
    }

    fn as_list(&self) -> String {
        let mut list = Vec::new();
        for row in &self.rows {
            list.push(row.first().cloned().unwrap_or_default());
            let others = self.header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
            list.extend(others.map(|(name, cell)| format!("  {name}: {}", cell.replace('\n', "\n    "))));
        }
        list.join("\n")
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if width() < WIDTH_OF_TEXT { f.write_str(&self.as_list()) } else { self.in_columns().fmt(f) }
    }
}

fn width_u16() -> u16 {
    u16::try_from(width()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
