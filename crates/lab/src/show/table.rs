//! Tables on a terminal: horizontal lines only, figures aligned to the right, never wider than the terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use console::Term;

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

/// An empty table for text: every column aligned to the left, lines wrapped at the terminal's width.
pub(crate) fn text(header: &[String]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table.set_width(width_u16());
    table
}

fn width_u16() -> u16 {
    u16::try_from(width()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
